package groupview

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// Cluster is what Read asks. *rocketmq.Client fills it.
type Cluster interface {
	Queues(ctx context.Context, topic string) ([]sdk.Queue, error)
	ConsumerConnections(ctx context.Context, broker, group string) (*wire.ConsumerConnections, error)
	ConsumeStats(ctx context.Context, broker, group, topic string) (*wire.ConsumeStats, error)
	Members
	Pull(ctx context.Context, req *rocketmq.PullRequest) (*rocketmq.PullResult, error)
}

// ErrUnknownGroup says that no broker knows the group: it never had a member, or was deleted.
var ErrUnknownGroup = errors.New("no broker knows the group")

// Read asks brokers and members. Topics are looked at beside those the members subscribe to: for groups that nobody is in
// now and that have no retry topic. The error is that nothing could be learned, as without the right on the group; what could
// not be learned in part is in the notes.
func Read(ctx context.Context, c Cluster, group string, topics []string) (*Group, error) {
	if err := CheckNames(group, topics); err != nil {
		return nil, err
	}
	r := &reader{cluster: c, out: &Group{Group: group, Time: time.Now(), Subscriptions: []Subscription{}, Members: []Member{}, Queues: []Queue{}, Notes: []string{}}, infos: map[string]*wire.ConsumerRunningInfo{}}
	if err := r.find(ctx, topics); err != nil {
		return nil, err
	}
	r.members(ctx)
	r.unlike()
	r.progress(ctx)
	if !r.told && len(r.failed) > 0 {
		return nil, fmt.Errorf("no broker tells of group %s: %w", group, r.failed[0])
	}
	r.local(ctx)
	r.own()
	r.ages(ctx)
	r.explain()
	return r.out, nil
}

// CheckNames tells which name no broker takes, and which characters are legal. The error wraps wire.ErrName.
func CheckNames(group string, topics []string) error {
	if err := wire.ValidateKnownGroup(group); err != nil {
		return err //nolint:wrapcheck // says which name, and why
	}
	for _, topic := range topics {
		if err := wire.ValidateTopic(topic); err != nil {
			return err //nolint:wrapcheck // as above
		}
	}
	return nil
}

type reader struct {
	cluster Cluster
	out     *Group
	brokers []string
	queues  map[sdk.Queue]*Queue
	infos   map[string]*wire.ConsumerRunningInfo // by client id
	asked   bool                                 // the connections were read from every broker

	mu     sync.Mutex // guards notes, queues, told and failed while questions run side by side
	told   bool       // a broker told members or offsets, be it that there are none
	failed []error    // what brokers did not tell
}

// heard takes down whether a broker told what it was asked: that nobody is there is an answer too.
func (r *reader) heard(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil || errors.Is(err, rocketmq.ErrNoMembers) {
		r.told = true
		return
	}
	r.failed = append(r.failed, err)
}

func (r *reader) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.out.Notes, text) {
		r.out.Notes = append(r.out.Notes, text)
	}
}

// find learns the group's brokers, connections and queues.
func (r *reader) find(ctx context.Context, topics []string) error {
	r.queues, r.asked = map[sdk.Queue]*Queue{}, true
	var first error
	walk := NewWalk(r.out.Group, topics)
	for topic := range walk.Topics() {
		qs, err := r.cluster.Queues(ctx, topic)
		if err != nil {
			first = errors.Join(first, err)
			if !errors.Is(err, rocketmq.ErrTopicNotFound) || !strings.HasPrefix(topic, wire.RetryTopic("")) {
				r.note("the queues of %s are not known: %v", topic, err)
				r.out.Gaps = append(r.out.Gaps, Gap{"the queues of " + topic, topic, err})
			}
			continue
		}
		for _, q := range qs {
			r.queue(q)
		}
		for _, broker := range walk.Brokers(qs) {
			r.brokers = append(r.brokers, broker)
			walk.Add(r.connections(ctx, broker)...)
		}
	}
	if len(r.brokers) == 0 {
		if errors.Is(first, rocketmq.ErrTopicNotFound) && ctx.Err() == nil {
			return fmt.Errorf("%w %s: it never had a member, or its retry topic is gone; name its topics with --topic", ErrUnknownGroup, r.out.Group)
		}
		return first
	}
	return nil
}

func (r *reader) queue(q sdk.Queue) *Queue {
	v := r.queues[q]
	if v == nil {
		v = &Queue{Topic: q.Topic, Broker: q.Broker, ID: q.ID, Owners: []string{}, Committed: Unknown, Max: Unknown, Lag: Unknown, OldestAge: Unknown, InFlight: Unknown}
		r.queues[q] = v
	}
	return v
}

// connections reads one broker's list of members and returns the topics they subscribe to.
func (r *reader) connections(ctx context.Context, broker string) []string {
	cs, err := r.cluster.ConsumerConnections(ctx, broker, r.out.Group)
	r.heard(err)
	if err != nil {
		if !errors.Is(err, rocketmq.ErrNoMembers) {
			r.asked = false
			r.note("broker %s does not tell the members: %v", broker, err)
			r.out.Gaps = append(r.out.Gaps, Gap{"the members at broker " + broker, "", err})
		}
		return nil
	}
	r.out.Model, r.out.StartFrom = string(cs.MessageModel), string(cs.ConsumeFromWhere)
	for _, c := range cs.Connections {
		if !slices.ContainsFunc(r.out.Members, func(m Member) bool { return m.ClientID == c.ClientID }) {
			r.out.Members = append(r.out.Members, Member{ClientID: c.ClientID, Address: c.Addr, Language: c.Language, Version: wire.Version(c.Version).String()})
		}
	}
	var topics []string
	for _, topic := range slices.Sorted(maps.Keys(cs.Subscriptions)) {
		s := cs.Subscriptions[topic]
		topics = append(topics, topic)
		sub := Subscription{topic, s.SubString, s.ExpressionType}
		i := slices.IndexFunc(r.out.Subscriptions, func(o Subscription) bool { return o.Topic == topic })
		switch {
		case i < 0:
			r.out.Subscriptions = append(r.out.Subscriptions, sub)
		case r.out.Subscriptions[i] != sub:
			r.note("brokers hold unlike filters for %s: %q and %q; members of one group must subscribe alike", topic, r.out.Subscriptions[i].Expression, sub.Expression)
		}
	}
	return topics
}

// members asks each for its own view (307).
func (r *reader) members(ctx context.Context) {
	Ask(ctx, r.cluster, r.out.Group, r.out.Members, func(m *Member) string { return m.ClientID }, func(m *Member, info *wire.ConsumerRunningInfo, err error) {
		if err == nil {
			err = m.describe(info)
			r.infos[m.ClientID] = info
		}
		if err != nil {
			m.Silent = err.Error()
			r.out.Gaps = append(r.out.Gaps, Gap{"the queues of member " + m.ClientID, "", err})
		}
	})
}

// progress reads committed and greatest offsets from each broker (208).
func (r *reader) progress(ctx context.Context) {
	var wg sync.WaitGroup
	for _, broker := range r.brokers {
		wg.Go(func() {
			stats, err := r.cluster.ConsumeStats(ctx, broker, r.out.Group, "")
			r.heard(err)
			if err != nil {
				r.note("broker %s does not tell the offsets: %v", broker, err)
				return
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			for q, o := range stats.Offsets {
				v := r.queue(sdk.Queue{Topic: q.Topic, Broker: q.BrokerName, ID: q.QueueID})
				v.Committed, v.Max = o.ConsumerOffset, o.BrokerOffset
				if v.Committed >= 0 {
					v.Lag = max(v.Max-v.Committed, 0)
				}
			}
		})
	}
	wg.Wait()
}

func (r *reader) member(id string) *Member {
	i := slices.IndexFunc(r.out.Members, func(m Member) bool { return m.ClientID == id })
	return &r.out.Members[i]
}

// own enters what the members say they own.
func (r *reader) own() {
	for _, id := range slices.Sorted(maps.Keys(r.infos)) {
		m := r.member(id)
		for q, p := range r.infos[id].Queues {
			own := sdk.Queue{Topic: q.Topic, Broker: q.BrokerName, ID: q.QueueID}
			pq := m.queue(own)
			if p.Dropped && pq == nil {
				continue
			}
			v := r.queue(own)
			v.Owners = append(v.Owners, id)
			inFlight := int(p.CachedCount) // Java and Go tell no more than what they hold
			if pq != nil {
				inFlight = pq.InFlight
			}
			v.InFlight = max(v.InFlight, 0) + inFlight
		}
	}
	for _, q := range slices.SortedFunc(maps.Keys(r.queues), sdk.Queue.Compare) {
		v := r.queues[q]
		if len(v.Owners) == 0 && len(r.infos) == len(r.out.Members) && r.asked {
			v.InFlight = 0
		}
		if v.Lag > 0 {
			r.out.Lag += v.Lag
		}
	}
}
