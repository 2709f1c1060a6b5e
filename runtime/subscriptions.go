package runtime

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime/internal/group"
)

// announced are the subscriptions that heartbeats tell.
func (m *member) announced() []rocketmq.Subscription {
	return m.views.announce(m.s.subscriptions(m.s.config()))
}

// tellAnnounced is announced for a heartbeat that is being made.
func (m *member) tellAnnounced() []rocketmq.Subscription {
	subs := m.announced()
	m.views.tell(subs)
	return subs
}

// lookAtRegistered reads what brokers have of the group before the first heartbeat, which may take its place. A broker that
// does not tell is no hindrance: then the first heartbeat tells the own set alone, as any client's does.
func (m *member) lookAtRegistered(ctx context.Context, c *StreamConfig) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	topics := make([]string, 0, len(c.Subscriptions)+1)
	for _, sub := range c.Subscriptions {
		topics = append(topics, sub.Topic)
	}
	registered, err := m.s.broker.Registered(ctx, c.Group, append(topics, wire.RetryTopic(c.Group)))
	if err != nil {
		m.s.log.Debug("what the group subscribes to so far is not known", "error", err.Error())
		return
	}
	m.views.noteRegistered(registered)
}

// compare acts on what was learned of the other members' subscriptions: differences are told once each, a round divides
// anew what depends on them, and brokers hear of a set that changed. It belongs to the poll of the members.
func (m *member) compare(ctx context.Context) {
	m.views.keep(m.others())
	own := m.s.subscriptions(m.s.config())
	m.tellUnlike(m.views.unlike(own))
	if seen := m.views.seen(own); seen != m.seenViews {
		m.seenViews = seen
		m.send(group.Input{Kind: group.InChange})
	}
	if m.views.isTold(m.announced()) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, joinLimit)
	defer cancel()
	if err := m.s.broker.Heartbeat(ctx); err != nil {
		m.s.log.Warn("brokers were not told what the group subscribes to; the next heartbeat tells them", "error", err.Error())
	}
}

// tellUnlike logs what is new, and that all is alike again.
func (m *member) tellUnlike(unlike []Unlike) {
	m.mu.Lock()
	before := m.unlike
	m.unlike = unlike
	m.mu.Unlock()
	for _, u := range unlike {
		if !slices.Contains(before, u) {
			m.s.log.Warn("members of the group subscribe unlike; give every member the same subscriptions, or a group of its own",
				"member", u.Member, "topic", u.Topic, "here", orNone(u.Here), "there", orNone(u.There), "difference", u.String())
		}
	}
	if len(unlike) == 0 && len(before) > 0 {
		m.s.log.Info("the known members of the group subscribe alike again")
	}
}

func orNone(filter string) string {
	if filter == "" {
		return "not subscribed"
	}
	return filter
}

// noteAbsent tells of a topic that some members do not subscribe to: who reads their share, or that nobody does.
func (m *member) noteAbsent(a *Assignment, topic string, d *allocate.Decision, absent []string) {
	a.Absent = absent
	for i, owner := range d.Owner {
		if owner >= 0 && i < len(d.Input.Queues) && slices.Contains(absent, d.Input.Members[owner].ClientID) {
			a.Unread = append(a.Unread, d.Input.Queues[i].String())
		}
	}
	text := fmt.Sprint(absent, len(a.Unread))
	if len(absent) == 0 {
		text = ""
	}
	if m.absentTold[topic] == text {
		return
	}
	m.absentTold[topic] = text
	log := m.s.log.With("topic", topic, "absent", strings.Join(absent, ", "))
	switch {
	case len(absent) == 0:
		log.Info("every known member subscribes to the topic again")
	case len(a.Unread) > 0:
		log.Warn("queues belong to members that do not subscribe to their topic, so that nobody reads them; have all members subscribe to it, or give the topic a group of its own", "queues", strings.Join(a.Unread, ", "))
	default:
		log.Info("the topic is divided among the members that subscribe to it")
	}
}
