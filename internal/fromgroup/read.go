package fromgroup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/internal/groupview"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/sdk"
)

// Cluster is what Read asks. *rocketmq.Client fills it.
type Cluster interface {
	Masters(ctx context.Context) ([]rocketmq.BrokerAddr, error)
	GroupConfig(ctx context.Context, at rocketmq.BrokerAddr, group string) (*wire.SubscriptionGroup, error)
	Queues(ctx context.Context, topic string) ([]sdk.Queue, error)
	ConsumerConnections(ctx context.Context, broker, group string) (*wire.ConsumerConnections, error)
	ConsumeStats(ctx context.Context, broker, group, topic string) (*wire.ConsumeStats, error)
	groupview.Members
}

// Read asks brokers and members. Topics are those that whoever asks knows of, for a group that nobody is in. The error is
// that nothing could be learned, as without the right on the group, groupview.ErrUnknownGroup that there is no such group.
func Read(ctx context.Context, c Cluster, group string, topics []string) (*Facts, error) {
	r := &reader{cluster: c, out: &Facts{Group: group, Time: time.Now(), Members: []Member{}, Topics: []Topic{}, Settings: []GroupSettings{}, Notes: []string{}}}
	for _, topic := range topics {
		r.topic(topic).Asked = true
	}
	if err := r.settings(ctx); err != nil {
		return nil, err
	}
	if err := r.brokers(ctx, topics); err != nil {
		return nil, err
	}
	if err := r.learned(); err != nil {
		return nil, err
	}
	r.members(ctx)
	r.filters()
	return r.out, nil
}

type reader struct {
	cluster Cluster
	out     *Facts
	known   bool    // somebody knows the group
	told    bool    // a broker told what it has of the group, be it nothing
	failed  []error // what brokers did not tell
	held    []brokerFilter
}

// brokerFilter is a subscription that a broker has registered, of whichever member's heartbeat came last.
type brokerFilter struct {
	broker string
	rocketmq.Subscription
}

// learned is nil when something is known of the group. That nobody knows it can be said only if every broker told.
func (r *reader) learned() error {
	switch group := r.out.Group; {
	case len(r.failed) > 0 && !r.told:
		return fmt.Errorf("no broker tells of group %s: %w", group, r.failed[0])
	case len(r.failed) > 0 && !r.known:
		return fmt.Errorf("who tells of group %s does not know it, and not all tell: %w", group, r.failed[0])
	case !r.known:
		return fmt.Errorf("%w %s: it never had a member and has no settings; look at its name and namespace, or write a config for a new group with --group", groupview.ErrUnknownGroup, group)
	}
	return nil
}

// heard takes down whether a broker told what it was asked: nothing is an answer too.
func (r *reader) heard(err error) {
	if err == nil || errors.Is(err, rocketmq.ErrGroupNotFound) || errors.Is(err, rocketmq.ErrNoMembers) {
		r.told = true
		return
	}
	r.failed = append(r.failed, err)
}

func (r *reader) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.out.Notes, text) {
		r.out.Notes = append(r.out.Notes, text)
	}
}

func (r *reader) topic(name string) *Topic {
	i := slices.IndexFunc(r.out.Topics, func(t Topic) bool { return t.Name == name })
	if i < 0 {
		r.out.Topics = append(r.out.Topics, Topic{Name: name, Filters: []Filter{}})
		i = len(r.out.Topics) - 1
	}
	return &r.out.Topics[i]
}

// settings reads the group's own, from each broker of the cluster.
func (r *reader) settings(ctx context.Context) error {
	masters, err := r.cluster.Masters(ctx)
	if err != nil {
		return err //nolint:wrapcheck // says what it asked for
	}
	for _, at := range masters {
		g, err := r.cluster.GroupConfig(ctx, at, r.out.Group)
		r.heard(err)
		switch {
		case err == nil:
			r.known = true
			r.out.Settings = append(r.out.Settings, GroupSettings{Broker: at.Name, Group: g})
			r.declared(at.Name, g)
		case !errors.Is(err, rocketmq.ErrGroupNotFound):
			r.out.Settings = append(r.out.Settings, GroupSettings{Broker: at.Name, Unknown: err.Error()})
			r.note("broker %s does not tell the group's settings: %v", at.Name, err)
		}
	}
	return nil
}

// declared takes the subscriptions that the group's settings may list since 5.0.
func (r *reader) declared(broker string, g *wire.SubscriptionGroup) {
	if len(g.Subscriptions) == 0 {
		return
	}
	var list []struct {
		Topic          string `json:"topic"`
		ExpressionType string `json:"expressionType"`
		Expression     string `json:"expression"`
	}
	if err := json.Unmarshal(g.Subscriptions, &list); err != nil {
		r.note("the subscriptions in the group's settings at broker %s cannot be read: %v", broker, err)
		return
	}
	for _, s := range list {
		r.hold("the group's settings at broker "+broker, wire.SubscriptionData{Topic: s.Topic, SubString: s.Expression, ExpressionType: s.ExpressionType})
	}
}

func (r *reader) hold(source string, data wire.SubscriptionData) {
	if wire.IsRetryTopic(data.Topic) || data.Topic == "" {
		return
	}
	r.topic(data.Topic)
	r.held = append(r.held, brokerFilter{source, rocketmq.SubscriptionOf(data)})
}

// brokers asks for members and offsets.
func (r *reader) brokers(ctx context.Context, topics []string) error {
	walk := groupview.NewWalk(r.out.Group, topics)
	for topic := range walk.Topics() {
		qs, err := r.cluster.Queues(ctx, topic)
		switch {
		case err == nil:
			r.known = r.known || topic == wire.RetryTopic(r.out.Group)
		case errors.Is(err, rocketmq.ErrTopicNotFound):
			if !wire.IsRetryTopic(topic) {
				r.note("topic %s does not exist", topic)
			}
			continue
		default:
			return err //nolint:wrapcheck // says which topic
		}
		for _, broker := range walk.Brokers(qs) {
			r.connections(ctx, broker)
			r.offsets(ctx, broker)
			for i := range r.out.Topics {
				walk.Add(r.out.Topics[i].Name)
			}
		}
	}
	return nil
}

func (r *reader) connections(ctx context.Context, broker string) {
	cs, err := r.cluster.ConsumerConnections(ctx, broker, r.out.Group)
	r.heard(err)
	if err != nil {
		if !errors.Is(err, rocketmq.ErrNoMembers) {
			r.note("broker %s does not tell the members: %v", broker, err)
		}
		return
	}
	r.known = true
	r.out.Model, r.out.ConsumeType, r.out.StartFrom = string(cs.MessageModel), string(cs.ConsumeType), string(cs.ConsumeFromWhere)
	for _, c := range cs.Connections {
		if !slices.ContainsFunc(r.out.Members, func(m Member) bool { return m.ClientID == c.ClientID }) {
			r.out.Members = append(r.out.Members, Member{ClientID: c.ClientID, Language: c.Language, Version: wire.Version(c.Version).String()})
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(cs.Subscriptions)) {
		r.hold("broker "+broker, cs.Subscriptions[topic])
	}
}

// offsets finds topics by what the group has stored (208).
func (r *reader) offsets(ctx context.Context, broker string) {
	stats, err := r.cluster.ConsumeStats(ctx, broker, r.out.Group, "")
	r.heard(err)
	if err != nil {
		r.note("broker %s does not tell the offsets: %v", broker, err)
		return
	}
	for q := range stats.Offsets {
		if !wire.IsRetryTopic(q.Topic) {
			r.topic(q.Topic).Offsets, r.known = true, true
		}
	}
}

// members asks each for its own view (307).
func (r *reader) members(ctx context.Context) {
	groupview.Ask(ctx, r.cluster, r.out.Group, r.out.Members, func(m *Member) string { return m.ClientID }, func(m *Member, info *wire.ConsumerRunningInfo, err error) {
		if err != nil {
			m.Silent = err.Error()
			r.note("member %s does not tell its settings (307): %s", m.ClientID, m.Silent)
			return
		}
		m.describe(info)
	})
}

func (m *Member) describe(info *wire.ConsumerRunningInfo) {
	m.Told, m.Pops, m.Queues = info.Properties, len(info.PopTable) > 0, []wire.MessageQueue{}
	if peer, err := allocate.PeerOf(m.ClientID, info.Properties); err == nil {
		m.Strategy = peer.Strategy
	}
	if ordered, err := strconv.ParseBool(info.Properties[wire.RunningOrderly]); err == nil {
		m.Order = "none"
		if ordered {
			m.Order = "queue"
		}
	}
	if own, err := runtime.ParsePeerInfo(info); err == nil {
		m.Streamd, m.Strategy = true, own.Strategy
		if own.Order != "" {
			m.Order = string(own.Order)
		}
	}
	for q, p := range info.Queues {
		if !p.Dropped && !wire.IsRetryTopic(q.Topic) {
			m.Queues = append(m.Queues, q)
		}
	}
	for _, data := range info.Subscriptions {
		if !wire.IsRetryTopic(data.Topic) {
			m.subscriptions = append(m.subscriptions, rocketmq.SubscriptionOf(data))
		}
	}
}
