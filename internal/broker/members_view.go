package broker

import (
	"maps"
	"slices"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// ids returns the client ids of a group in the order in which they came, duplicates included.
func (t *memberTable) ids(group string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.consumers[group]
	if g == nil {
		return nil
	}
	ids := make([]string, 0, len(g.members))
	for _, m := range g.members {
		ids = append(ids, m.clientID)
	}
	return ids
}

// conns returns the connections of a group, and its message model.
func (t *memberTable) conns(group string) ([]*remote.Conn, wire.MessageModel) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.consumers[group]
	if g == nil {
		return nil, ""
	}
	conns := make([]*remote.Conn, 0, len(g.members))
	for _, m := range g.members {
		conns = append(conns, m.conn)
	}
	return conns, g.model
}

// group returns a copy of what is known of a group; false when nobody is in it.
func (t *memberTable) group(name string) (consumerGroup, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.consumers[name]
	if g == nil {
		return consumerGroup{}, false
	}
	c := *g
	c.subscriptions, c.members = maps.Clone(g.subscriptions), slices.Clone(g.members)
	return c, true
}

// subscription returns what a group registered for a topic. known is false when the group has no members.
func (t *memberTable) subscription(group, topic string) (s wire.SubscriptionData, model wire.MessageModel, known, subscribed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.consumers[group]
	if g == nil {
		return wire.SubscriptionData{}, "", false, false
	}
	s, subscribed = g.subscriptions[topic]
	return s, g.model, true, subscribed
}

// producer returns the members of a producer group.
func (t *memberTable) producer(group string) []member {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.producers[group])
}

// member returns a client of a group; false when it is not there.
func (t *memberTable) member(group, clientID string) (member, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g := t.consumers[group]; g != nil {
		for _, m := range g.members {
			if m.clientID == clientID {
				return m, true
			}
		}
	}
	return member{}, false
}
