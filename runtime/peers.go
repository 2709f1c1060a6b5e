package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime/internal/group"
)

// PeerInfoProperty is the property of a member's running info (307) that holds a PeerInfo as JSON.
const PeerInfoProperty = "streamd.peer"

// PeerInfo is what a streamd member tells of itself: to other members, which wait for queues that it lists, and to tools.
type PeerInfo struct {
	Version  string                `json:"version"`
	Stream   string                `json:"stream"`
	State    string                `json:"state"` // "running" or "stopping"
	Strategy string                `json:"strategy,omitempty"`
	Plugin   string                `json:"plugin,omitempty"`
	PID      int                   `json:"plugin_pid,omitempty"`
	Lanes    int                   `json:"lanes"`
	Order    Order                 `json:"order,omitempty"` // queue or key
	Locks    int                   `json:"locks,omitempty"` // queue locks held
	Heads    []Head                `json:"heads,omitempty"` // the first of the failed messages that are tried in place
	Holds    []Hold                `json:"holds,omitempty"`
	Queues   map[string]PeerQueue  `json:"queues"` // by Queue.String
	Counters map[string]uint64     `json:"counters,omitempty"`
	Assigned map[string]Assignment `json:"assigned,omitempty"` // by topic
	Fresh    []string              `json:"fresh,omitempty"`    // queues that were there when the group was new, a few minutes ago
}

// PeerQueue is one queue that a member has or waits for.
type PeerQueue struct {
	Topic     string `json:"topic"`
	Broker    string `json:"broker"`
	ID        int32  `json:"id"`
	State     string `json:"state"` // waiting, owned or draining: the latter two mean hands off
	Epoch     uint64 `json:"epoch,omitempty"`
	Committed int64  `json:"committed"`
	Safe      int64  `json:"safe"`
	InFlight  int    `json:"in_flight"`
	Messages  int    `json:"messages"`
	Bytes     int64  `json:"bytes"`
	Span      int64  `json:"span"`
	Locked    bool   `json:"locked,omitempty"`    // the broker's lock of an ordered queue is held
	OldestMS  int64  `json:"oldest_ms,omitempty"` // age of the message that holds the offset
	Hold      *Hold  `json:"hold,omitempty"`
}

// Queue is the queue's name.
func (p PeerQueue) Queue() Queue { return Queue{Topic: p.Topic, Broker: p.Broker, ID: p.ID} }

// Assignment is how a topic was divided as this member computed it.
type Assignment struct {
	Mine     int    `json:"mine"`
	Of       int    `json:"of"`
	Members  int    `json:"members"`
	Kept     bool   `json:"kept,omitempty"`
	Fallback string `json:"fallback,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Absent are members that do not subscribe to the topic. Unread are their queues, which nobody reads; none when the
	// topic is divided among the others.
	Absent []string `json:"absent,omitempty"`
	Unread []string `json:"unread,omitempty"`
}

// ErrNotStreamd means that a running info is not of a streamd member.
var ErrNotStreamd = errors.New("member is not a streamd")

// ParsePeerInfo reads the PeerInfo of a member's running info. ErrNotStreamd when it has none.
func ParsePeerInfo(info *wire.ConsumerRunningInfo) (PeerInfo, error) {
	var p PeerInfo
	text, ok := info.Properties[PeerInfoProperty]
	if !ok {
		return p, ErrNotStreamd
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, fmt.Errorf("reading a member's %s: %w", PeerInfoProperty, err)
	}
	return p, nil
}

// peerLimit bounds one question to a member; silence is "unknown", never "agrees" and never "holds".
const peerLimit = 3 * time.Second

// holders asks all other members which of the queues they own or drain.
func (m *member) holders(ctx context.Context, queues []Queue) map[Queue]string {
	held := map[Queue]string{}
	if m.s.config().Broadcasting {
		return held // all have all
	}
	var mu sync.Mutex
	m.eachPeer(ctx, m.mayHold(), func(id string, info *wire.ConsumerRunningInfo) {
		p, err := ParsePeerInfo(info)
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, q := range queues {
			switch theirs := p.Queues[q.String()]; theirs.State {
			case string(group.Owned), string(group.Draining):
				held[q] = id
			}
		}
	})
	return held
}

// parallelPeers bounds the questions in flight.
const parallelPeers = 64

func (m *member) eachPeer(ctx context.Context, ids []string, f func(id string, info *wire.ConsumerRunningInfo)) {
	slots := make(chan struct{}, parallelPeers)
	var wg sync.WaitGroup
	for _, id := range ids {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := timeLimit(ctx, peerLimit)
			defer cancel()
			info, err := m.manners.ask(ctx, id, func(ctx context.Context) (*wire.ConsumerRunningInfo, error) {
				return m.s.broker.PeerInfo(ctx, m.s.config().Group, id) //nolint:wrapcheck // the client names the member
			})
			if err == nil && info != nil {
				m.views.learn(id, info)
				f(id, info)
			}
			m.tellUnasked(err)
		})
	}
	wg.Wait()
}

func (m *member) others() []string {
	self := m.s.broker.ClientID()
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(m.members(), func(id string) bool { return id == self })
}

// members lists the group's members, in order; the caller holds mu.
func (m *member) members() (all []string) {
	for _, ids := range m.ids {
		all = append(all, ids...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// noteMembers keeps a topic's list. Brokers may list different members; whoever any of them lists may own a queue.
func (m *member) noteMembers(topic string, ids []string) {
	m.mu.Lock()
	m.ids[topic] = slices.Clone(ids)
	m.returning.note(ids, m.s.rt.Now())
	m.mu.Unlock()
}

// forgetMembers drops the lists of topics that are not subscribed any more.
func (m *member) forgetMembers(subscribed []group.Topic) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.ids, func(topic string, _ []string) bool {
		return !slices.ContainsFunc(subscribed, func(t group.Topic) bool { return t.Name == topic })
	})
}

func (m *member) noteDecision(topic string, d allocate.Decision, absent []string) {
	a := Assignment{Mine: len(d.Mine), Of: len(d.Input.Queues), Members: len(d.Input.Members), Kept: d.Kept, Fallback: d.Fallback}
	if d.Reason != nil {
		a.Reason = d.Reason.Error()
	}
	m.noteAbsent(&a, topic, &d, absent)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.digests[topic], m.assign[topic] = d.Digest, a
}

// known lists what was learned of the other members of a list.
func (r *round) known(members []string) []allocate.Peer {
	self := r.m.s.broker.ClientID()
	r.mu.Lock()
	defer r.mu.Unlock()
	var peers []allocate.Peer
	for _, id := range members {
		if p, ok := r.kinds[id]; ok && id != self {
			peers = append(peers, p)
		}
	}
	return peers
}

// askAll asks every other member what it runs. One that does not answer is unknown.
func (r *round) askAll(ctx context.Context, members []string) []allocate.Peer {
	self := r.m.s.broker.ClientID()
	ids := slices.DeleteFunc(slices.Clone(members), func(id string) bool { return id == self })
	slices.Sort(ids)
	ids = slices.Compact(ids)
	r.m.eachPeer(ctx, ids, r.learn)
	peers := r.known(ids)
	for _, id := range ids {
		if !slices.ContainsFunc(peers, func(p allocate.Peer) bool { return p.ClientID == id }) {
			peers = append(peers, allocate.Peer{ClientID: id})
		}
	}
	r.forgetOthers(ids)
	return peers
}

func (r *round) learn(id string, info *wire.ConsumerRunningInfo) {
	p, err := allocate.PeerOf(id, info.Properties)
	if err != nil {
		r.m.s.log.Warn("a member's digest cannot be read", "member", id, "error", err.Error())
	}
	r.mu.Lock()
	r.kinds[id] = p
	r.mu.Unlock()
}

func (r *round) forgetOthers(ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.kinds {
		if !slices.Contains(ids, id) {
			delete(r.kinds, id)
		}
	}
}

// poll asks one other member a round, each in turn, and tells when it computes otherwise (design.md 9); with it those whose
// subscriptions are not known, and all of them while any subscribes unlike.
func (r *round) poll(ctx context.Context) {
	others := r.m.others()
	r.m.manners.keep(others)
	neighbor, ok := r.nextNeighbor(others)
	if !ok {
		return
	}
	defer r.polled()
	ids := r.m.views.whom(r.m.s.subscriptions(r.m.s.config()), others)
	if neighbor != "" && !slices.Contains(ids, neighbor) {
		ids = append(ids, neighbor)
	}
	var mu sync.Mutex
	told := make(map[string]bool, len(ids))
	had := r.m.epochs()
	r.m.eachPeer(ctx, ids, func(id string, info *wire.ConsumerRunningInfo) {
		r.learn(id, info)
		r.m.noteOverlaps(had, id, info)
		mu.Lock()
		defer mu.Unlock()
		told[id] = true
	})
	if ctx.Err() != nil {
		return
	}
	for _, id := range ids {
		if !told[id] {
			r.m.views.silent(id)
		}
	}
	r.m.compare(ctx)
	if neighbor != "" {
		r.tellDisagreement(neighbor)
	}
}

func (r *round) tellDisagreement(id string) {
	r.m.mu.Lock()
	own := make(map[string]allocate.Digest, len(r.m.digests))
	maps.Copy(own, r.m.digests)
	r.m.mu.Unlock()
	for topic, d := range own {
		if other := allocate.Disagree(d, topic, r.known([]string{id})); len(other) > 0 && d.Input != "" {
			r.m.s.log.Warn("a member divides the topic otherwise; queues may be read twice or not at all until both run the same strategy", "member", id, "topic", topic, "strategy", d.Identity.String())
		}
	}
}

// nextNeighbor is whom to poll now, "" when nobody else is there; false while a poll is under way.
func (r *round) nextNeighbor(others []string) (id string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.polling {
		return "", false
	}
	r.polling = true
	if len(others) == 0 {
		return "", true
	}
	r.neighbor++
	return others[r.neighbor%len(others)], true
}

func (r *round) polled() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.polling = false
}
