package queue

import (
	"errors"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// explain says of a failed call what holds the queue, and for people what to do where the broker's words do not tell
// (PullMessageProcessor; consumer-semantics.md 3.6).
func explain(kind HoldKind, err error, group string) (HoldKind, string) {
	var refused *rocketmq.ResponseError
	if !errors.As(err, &refused) {
		return kind, err.Error()
	}
	if _, access := rocketmq.AccessRefused(err); access {
		return HoldAccess, err.Error()
	}
	switch {
	case refused.Code == wire.RespGroupNotExist:
		return HoldGroupMissing, err.Error() + "; it goes on as soon as somebody creates the group there: " + updateGroup(group)
	case IsGroupDisabled(err):
		return HoldGroupDisabled, "consumption of group " + group + " is switched off at broker " + refused.Broker +
			" (consumeEnable=false): paused, nothing is lost; to go on: " + updateGroup(group) + " -s true"
	case refused.Code == wire.RespNoPermission && strings.Contains(refused.Remark, "by broadcast way"):
		return kind, "group " + group + " may not broadcast at broker " + refused.Broker +
			" (consumeBroadcastEnable=false): nothing is lost; to allow it: " + updateGroup(group) + " -d true"
	case refused.Code == wire.RespNoPermission && strings.Contains(refused.Remark, "forbidden"):
		return kind, err.Error() + "; the topic or the broker is not readable: mqadmin updateTopicPerm, or brokerPermission in the broker's configuration"
	case refused.Code == wire.RespTopicNotExist:
		return kind, err.Error() + "; the broker does not have the topic any more, or not yet"
	}
	return kind, err.Error()
}

func updateGroup(group string) string { return "mqadmin updateSubGroup -c CLUSTER -g " + group }

// IsGroupDisabled tells that a broker refuses pulls because an operator switched the group's consumption off. Brokers have no
// code for it, only a remark.
func IsGroupDisabled(err error) bool {
	var refused *rocketmq.ResponseError
	return errors.As(err, &refused) && refused.Request == wire.ReqPullMessage && refused.Code == wire.RespNoPermission &&
		strings.Contains(refused.Remark, "subscription group no permission")
}
