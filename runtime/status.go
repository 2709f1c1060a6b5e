package runtime

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime/internal/dispatch"
	"github.com/streamd/streamd/runtime/internal/group"
	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/runtime/internal/settle"
)

// Hold says why something waits: a kind to branch on, a text for people.
type Hold = queue.Hold

// HoldKind is the class of a Hold.
type HoldKind = queue.HoldKind

// The kinds of holds; see their docs in runtime/internal/queue.
const (
	HoldWindowCount    = queue.HoldWindowCount
	HoldWindowBytes    = queue.HoldWindowBytes
	HoldWindowSpan     = queue.HoldWindowSpan
	HoldStreamBytes    = queue.HoldStreamBytes
	HoldPluginDown     = queue.HoldPluginDown
	HoldPluginBroken   = queue.HoldPluginBroken
	HoldHandlerDown    = queue.HoldHandlerDown
	HoldNoCredit       = queue.HoldNoCredit
	HoldFilter         = queue.HoldFilter
	HoldGroupMissing   = queue.HoldGroupMissing
	HoldGroupDisabled  = queue.HoldGroupDisabled
	HoldMembersUnknown = queue.HoldMembersUnknown
	HoldRouteUnknown   = queue.HoldRouteUnknown
	HoldStrategy       = queue.HoldStrategy
	HoldHandOver       = queue.HoldHandOver
	HoldStartUnknown   = queue.HoldStartUnknown
	HoldOffsetsLost    = queue.HoldOffsetsLost
	HoldOutOfRange     = queue.HoldOutOfRange
	HoldGarbage        = queue.HoldGarbage
	HoldBroker         = queue.HoldBroker
	HoldAccess         = queue.HoldAccess
	HoldSettle         = queue.HoldSettle
	HoldRetryOff       = queue.HoldRetryOff
	HoldExhausted      = queue.HoldExhausted
	HoldDraining       = queue.HoldDraining
	HoldCommit         = queue.HoldCommit
	HoldInPlace        = queue.HoldInPlace
	HoldLock           = queue.HoldLock
)

// Status is a reading of the whole engine.
type Status struct {
	State       State
	MemoryUsed  int64
	MemoryLimit int64
	Streams     []StreamStatus // by name
}

// StreamStatus is a reading of one stream.
type StreamStatus struct {
	Name, Group, Broker, Handler string
	ClientID                     string
	Joined                       bool
	Members                      []string // as last listed; nil = not known
	Assignments                  map[string]Assignment
	Queues                       []QueueStatus // owned, drained or waited for, in order
	Lanes                        int
	Plugin                       frame.LaneInfo // of the first lane
	Ready                        int            // messages that wait for a lane
	Suspects                     int            // messages that wait to be tried alone
	Settling                     int            // verdicts that are not durable yet
	Order                        Order
	LocksHeld                    int    // of the queues of an ordered stream
	Heads                        []Head // failed messages that are tried again in place, at most 1,000
	BytesUsed, BytesLimit        int64
	Holds                        []Hold   // what holds the stream as a whole
	Unlike                       []Unlike // members that subscribe to something else
	Counters                     Counters
}

// Counters count since the stream started.
type Counters struct {
	Queues                                              queue.Counters
	Group                                               group.Counters
	Dispatch                                            dispatch.Counters
	Settle                                              settle.Counters
	FailuresStored, FailuresInFile, FailuresNotRecorded uint64
}

// QueueStatus is a reading of one queue of a member.
type QueueStatus struct {
	queue.Status
	State  string        // waiting, owned or draining
	Member string        // waiting: who still has it
	Lag    int64         // messages from the safe offset to the queue's end; -1 = not known
	Oldest time.Duration // age of the message that holds the offset, by its store time; 0 = none
}

// Status reads the engine's state. It waits for nothing.
func (r *Runtime) Status() Status {
	r.mu.Lock()
	st := Status{State: r.state, MemoryLimit: r.cfg.Memory}
	streams := make([]*stream, 0, len(r.streams))
	for _, s := range r.streams {
		streams = append(streams, s)
	}
	r.mu.Unlock()
	st.MemoryUsed = r.budget.Used()
	for _, s := range streams {
		st.Streams = append(st.Streams, s.status())
	}
	slices.SortFunc(st.Streams, func(a, b StreamStatus) int { return strings.Compare(a.Name, b.Name) })
	return st
}

// Ready tells that every stream has joined and its handler answers: what readiness asks once after a start.
func (s *Status) Ready() bool {
	for i := range s.Streams {
		if st := &s.Streams[i]; !st.Joined || st.Lanes == 0 || len(st.Assignments) == 0 {
			return false
		}
	}
	return s.State == StateRunning
}

func (s *stream) status() StreamStatus {
	c := s.config()
	d := s.sink.status()
	settled, settling, refused := s.settler.Status()
	st := StreamStatus{
		Name: s.name, Group: c.Group, Broker: c.Broker, Handler: c.Handler, ClientID: s.broker.ClientID(),
		Lanes: d.Lanes, Plugin: d.Info, Ready: d.Ready, Suspects: d.Suspects, Settling: settling,
		BytesUsed: s.shares.whole.Used(), BytesLimit: s.shares.whole.Limit(),
	}
	s.member.read(&st)
	st.Order, st.LocksHeld, st.Heads = c.Order, locksHeld(st.Queues), s.settler.Heads()
	st.showHeads(s.rt.Now())
	st.Counters.Dispatch, st.Counters.Settle = d.Counters, settled
	st.Counters.FailuresStored, st.Counters.FailuresInFile, st.Counters.FailuresNotRecorded = s.recorder.Counts()
	now := s.rt.Now()
	for _, h := range []Hold{d.Hold, refused} {
		if h.Held() {
			h.For = now.Sub(h.Since)
			st.Holds = append(st.Holds, h)
		}
	}
	if name, full := s.shares.full(); full {
		st.Holds = append(st.Holds, Hold{Kind: HoldStreamBytes, Text: "pulls wait for memory of " + name})
	}
	return st
}

// causesFirst orders holds for readers who look at the first one: the retry topic is made by the first heartbeat, so its
// absence mostly follows from what is wrong with a subscribed topic.
func causesFirst(a, b Hold) int {
	if ra, rb := wire.IsRetryTopic(a.Text), wire.IsRetryTopic(b.Text); ra != rb {
		if ra {
			return 1
		}
		return -1
	}
	return strings.Compare(a.Text, b.Text)
}

func (m *member) read(st *StreamStatus) {
	now := m.s.rt.Now()
	m.mu.Lock()
	st.Joined = m.joined
	st.Members = m.members()
	st.Unlike = slices.Clone(m.unlike)
	st.Assignments = make(map[string]Assignment, len(m.assign))
	maps.Copy(st.Assignments, m.assign)
	queues, past, counts := m.queues, m.past, m.counts
	counts.Overlaps += m.overlaps.count
	if !m.joined && m.waiting.Held() {
		h := m.waiting
		h.For = now.Sub(h.Since)
		st.Holds = append(st.Holds, h)
	}
	for topic, h := range m.topics {
		h.For = now.Sub(h.Since)
		h.Text = topic + ": " + h.Text
		st.Holds = append(st.Holds, h)
	}
	m.mu.Unlock()
	slices.SortFunc(st.Holds, causesFirst)
	st.Counters.Group = counts
	st.Counters.Queues = past
	for _, q := range queues {
		qs := m.queueStatus(q, now)
		st.Counters.Queues.Add(qs.Counters)
		st.Queues = append(st.Queues, qs)
	}
}

func (m *member) queueStatus(g group.QueueState, now time.Time) QueueStatus {
	qs := QueueStatus{State: string(g.State), Member: g.Member, Lag: -1}
	qs.Status = queue.Status{Queue: g.Queue, Epoch: g.Epoch, Committed: -1, Safe: -1, Next: -1, Max: -1}
	if g.State == group.Waiting {
		qs.Hold = Hold{Kind: HoldHandOver, Member: g.Member, Since: g.Since, For: now.Sub(g.Since), Text: "asks the other members whether they have it"}
		if g.Member != "" {
			qs.Hold.Text = "waits until member " + g.Member + " gives it up"
		}
		return qs
	}
	w := m.worker(g.Queue)
	if w == nil {
		return qs
	}
	qs.Status = w.Status()
	if qs.Max >= 0 && qs.Safe >= 0 {
		qs.Lag = max(0, qs.Max-qs.Safe)
	}
	if !qs.OldestStored.IsZero() {
		qs.Oldest = max(0, now.Sub(qs.OldestStored))
	}
	return qs
}
