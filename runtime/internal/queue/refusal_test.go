package queue

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// What people read of a refusal (consumer-semantics.md 3.6; the remarks are those of 4.9.7 and 5.3.3).
func TestExplain(t *testing.T) {
	refusal := func(request wire.RequestCode, code wire.ResponseCode, remark string) error {
		return fmt.Errorf("pulling: %w", &rocketmq.ResponseError{Request: request, Code: code, Remark: remark, Broker: "broker-a"})
	}
	for name, tt := range map[string]struct {
		err    error
		kind   HoldKind
		has    string
		paused bool
	}{
		"no answer":         {errors.New("no answer"), HoldBroker, "no answer", false},
		"busy":              {refusal(wire.ReqPullMessage, wire.RespSystemBusy, "[PCBUSY_CLEAN_QUEUE]"), HoldBroker, "PCBUSY", false},
		"group not there":   {refusal(wire.ReqPullMessage, wire.RespGroupNotExist, "subscription group [G] does not exist"), HoldGroupMissing, "mqadmin updateSubGroup -c CLUSTER -g G", false},
		"group disabled":    {refusal(wire.ReqPullMessage, wire.RespNoPermission, "subscription group no permission, G"), HoldGroupDisabled, "updateSubGroup -c CLUSTER -g G -s true", true},
		"topic write-only":  {refusal(wire.ReqPullMessage, wire.RespNoPermission, "the topic[T] pulling message is forbidden"), HoldBroker, "updateTopicPerm", false},
		"broker write-only": {refusal(wire.ReqPullMessage, wire.RespNoPermission, "the broker[10.0.0.1] pulling message is forbidden"), HoldBroker, "brokerPermission", false},
		"access refused":    {refusal(wire.ReqPullMessage, wire.RespNoPermission, "User:x has no permission to access Topic:T from 10.0.0.1"), HoldAccess, "Topic:T", false},
		"topic not there":   {refusal(wire.ReqPullMessage, wire.RespTopicNotExist, "topic[T] not exist"), HoldBroker, "does not have the topic", false},
		"a send refused":    {refusal(wire.ReqSendMessage, wire.RespNoPermission, "subscription group no permission"), HoldBroker, "no permission", false},
	} {
		kind, text := explain(HoldBroker, tt.err, "G")
		if kind != tt.kind || !strings.Contains(text, tt.has) || IsGroupDisabled(tt.err) != tt.paused {
			t.Errorf("%s: %s %q, paused %t; want %s with %q, %t", name, kind, text, IsGroupDisabled(tt.err), tt.kind, tt.has, tt.paused)
		}
	}
}
