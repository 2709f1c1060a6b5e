package broker

import (
	"strconv"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// faq ends many of RocketMQ's remarks (FAQUrl).
const faq = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."

// plain is an answer of a code that has no header class: extFields are absent.
func plain(c wire.ResponseCode, remark string) *remote.Answer {
	return &remote.Answer{Code: c, Remark: remark}
}

// headed is an answer of a code that has a header class; without values its extFields are there and empty.
func headed(c wire.ResponseCode, remark string, fields ...wire.Field) *remote.Answer {
	if fields == nil {
		fields = wire.Fields{}
	}
	return &remote.Answer{Code: c, Remark: remark, Ext: fields}
}

// withBody is a success without header class and with a body.
func withBody(body []byte) *remote.Answer {
	return &remote.Answer{Code: wire.RespSuccess, Body: body}
}

func number(key string, v int64) wire.Field {
	return wire.Field{Key: key, Value: strconv.FormatInt(v, 10)}
}

func text(key, v string) wire.Field { return wire.Field{Key: key, Value: v} }
