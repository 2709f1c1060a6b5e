package broker

import (
	"encoding/json"
	"slices"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// maxList bounds how many topics or groups one request makes.
const maxList = 10_000

// onTopicList is 18: makes or changes several topics, or none when one of them is wrong.
func (b *Broker) onTopicList(r *remote.Request) *remote.Answer {
	var list wire.TopicConfigList
	if bad := readBody(r, &list); bad != nil {
		return bad
	}
	if len(list.Topics) > maxList {
		return plain(wire.RespSystemError, "too many topics in one request")
	}
	for _, c := range list.Topics {
		if bad := b.checkNewTopic(c); bad != nil {
			return bad
		}
	}
	for _, c := range list.Topics {
		if c.Attributes == nil {
			c.Attributes = map[string]string{}
		}
		b.topics.put(c)
	}
	return plain(wire.RespSuccess, unset)
}

// onGroupList is 225: makes or changes several groups.
func (b *Broker) onGroupList(r *remote.Request) *remote.Answer {
	var list wire.SubscriptionGroupList
	if bad := readBody(r, &list); bad != nil {
		return bad
	}
	if len(list.Groups) > maxList {
		return plain(wire.RespSystemError, "too many groups in one request")
	}
	groups := make([]wire.SubscriptionGroup, 0, len(list.Groups))
	for _, raw := range list.Groups {
		g := b.NewGroup("")
		if err := json.Unmarshal(raw, &g); err != nil {
			return plain(wire.RespSystemError, "a group of the list cannot be read: "+err.Error())
		}
		if bad := b.checkGroup(g); bad != nil {
			return bad
		}
		groups = append(groups, g)
	}
	for _, g := range groups {
		b.groups.put(g)
	}
	return plain(wire.RespSuccess, "")
}

// onSystemTopics is 305: the topics that are RocketMQ's own.
func (b *Broker) onSystemTopics(*remote.Request) *remote.Answer {
	names := slices.DeleteFunc(b.topics.names(), func(name string) bool { return !b.isSystem(name) })
	return jsonBody(wire.TopicList{Topics: names}, wire.Standard)
}

// isSystem tells whether a topic is RocketMQ's own. Those named after the broker and its cluster are.
func (b *Broker) isSystem(topic string) bool {
	return wire.IsSystemTopic(topic) || topic == b.config.Name || topic == b.config.Cluster || topic == b.config.Cluster+"_REPLY_TOPIC"
}
