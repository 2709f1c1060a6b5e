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

// readBody reads a JSON body; the answer is nil if that worked.
func readBody(r *remote.Request, into any) *remote.Answer {
	if err := wire.DecodeBody(r.Command.Body, into); err != nil {
		return plain(wire.RespSystemError, "the request's body cannot be read: "+err.Error())
	}
	return nil
}

// jsonBody is a success without header class whose body is v.
func jsonBody(v any, d wire.Dialect) *remote.Answer {
	body, err := wire.EncodeBody(v, d)
	if err != nil {
		return plain(wire.RespSystemError, "the answer's body cannot be written: "+err.Error())
	}
	return withBody(body)
}

func number(key string, v int64) wire.Field {
	return wire.Field{Key: key, Value: strconv.FormatInt(v, 10)}
}

func text(key, v string) wire.Field { return wire.Field{Key: key, Value: v} }

// unset is the remark of several successes of RocketMQ, which forgets to say how it went.
const unset = "not set any response code"
