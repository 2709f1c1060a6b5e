package runtime_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
)

const silentTopic = "Silent"

// partlySilent is a client whose broker of silentTopic does not answer when asked for members, while on.
type partlySilent struct {
	*clustertest.Client
	on    atomic.Bool
	after time.Duration // it answers so late; 0 = never
}

func (p *partlySilent) Members(ctx context.Context, groupName, topic string) ([]string, error) {
	if topic == silentTopic && p.on.Load() {
		late := make(<-chan time.Time)
		if p.after > 0 {
			late = time.After(p.after)
		}
		select {
		case <-late:
		case <-ctx.Done():
			return nil, errors.New("no answer from the broker")
		}
	}
	return p.Client.Members(ctx, groupName, topic)
}

func silentRig(t *testing.T, after time.Duration) (*rig, *partlySilent, runtime.Config) {
	t.Helper()
	r := newRig(t, 4, ack)
	r.cluster.CreateTopic(silentTopic, 4)
	cfg := r.config("c1", func(s *runtime.StreamConfig) {
		s.Subscriptions = []runtime.Subscription{{Topic: silentTopic}, {Topic: topicName}}
	})
	p := &partlySilent{Client: r.cluster.Client("c1"), after: after}
	p.on.Store(true)
	cfg.Brokers["main"] = p
	return r, p, cfg
}

func ownedOf(e *runtime.Runtime, topic string) (ids []int32) {
	for _, q := range e.Status().Streams[0].Queues {
		if q.State == "owned" && q.Queue.Topic == topic {
			ids = append(ids, q.Queue.ID)
		}
	}
	return ids
}

// A topic whose broker is silent holds up nobody but itself, and its status says what it waits for.
func TestTopicsDoNotWaitForAnothersSilentBroker(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r, p, cfg := silentRig(t, 0)
		e := r.start(cfg)
		wait(time.Second)
		if got := ownedOf(e, topicName); len(got) != 4 {
			t.Errorf("after 1 s owns %v of the topic whose broker answers", got)
		}
		wait(16 * time.Second)
		if got := ownedOf(e, silentTopic); len(got) != 0 || !holds(e.Status(), runtime.HoldMembersUnknown) {
			t.Errorf("owns %v of the silent broker's topic, holds %+v", got, e.Status().Streams[0].Holds)
		}
		p.on.Store(false)
		wait(20 * time.Second)
		if got := ownedOf(e, silentTopic); len(got) != 4 {
			t.Errorf("owns %v after the broker answers again", got)
		}
		r.stop(e)
	})
}

// Nor does the hand-over that a new member begins while the round waits: from 5 s on another round passes the silent one.
func TestNewMemberDoesNotWaitForASilentBroker(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r, _, cfg := silentRig(t, 0)
		a := r.start(cfg)
		wait(2 * time.Second)
		b := r.start(r.config("c2", func(s *runtime.StreamConfig) {
			s.Subscriptions = []runtime.Subscription{{Topic: silentTopic}, {Topic: topicName}}
		}))
		wait(4500 * time.Millisecond)
		if x, y := ownedOf(a, topicName), ownedOf(b, topicName); !slices.Equal(x, []int32{0, 1}) || !slices.Equal(y, []int32{2, 3}) {
			t.Errorf("4.5 s after the second member joined %v and %v are owned", x, y)
		}
		var hold string
		for _, h := range a.Status().Streams[0].Holds {
			hold += h.Text
		}
		if !strings.Contains(hold, "before the next round") {
			t.Errorf("holds say %q", hold)
		}
		r.stop(b)
		r.stop(a)
	})
}

// A broker that is slow is not silent.
func TestSlowBrokerIsWaitedFor(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r, _, cfg := silentRig(t, 4*time.Second)
		e := r.start(cfg)
		wait(5 * time.Second)
		if got := ownedOf(e, silentTopic); len(got) != 4 {
			t.Errorf("owns %v of a topic whose broker needs 4 s", got)
		}
		r.stop(e)
	})
}

// However many topics there are, they are asked together.
func TestManySilentTopicsCostOneLimit(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 4, ack)
		cfg := r.config("c1", func(s *runtime.StreamConfig) {
			s.Subscriptions = nil
			for _, name := range []string{"A", "B", "C", "D", "E"} {
				r.cluster.CreateTopic(name, 1)
				s.Subscriptions = append(s.Subscriptions, runtime.Subscription{Topic: name})
			}
		})
		slow := &slowMembers{Client: r.cluster.Client("c1"), by: 3 * time.Second}
		cfg.Brokers["main"] = slow
		e := r.start(cfg)
		wait(4 * time.Second)
		if got := e.Status().Streams[0].Queues; len(got) != 6 {
			t.Errorf("%d queues after 4 s, want 5 and the retry topic's: %+v", len(got), got)
		}
		r.stop(e)
	})
}

type slowMembers struct {
	*clustertest.Client
	by time.Duration
}

func (s *slowMembers) Members(ctx context.Context, groupName, topic string) ([]string, error) {
	select {
	case <-time.After(s.by):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.Client.Members(ctx, groupName, topic)
}

var (
	_ runtime.Broker = (*partlySilent)(nil)
	_ runtime.Broker = (*slowMembers)(nil)
)

// A topic that is not there yet is what the status names first, not the retry topic that follows from it.
func TestMissingTopicIsNamedWithWhatMakesIt(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 4, ack)
		e := r.start(r.config("c1", func(s *runtime.StreamConfig) {
			s.Subscriptions = []runtime.Subscription{{Topic: "later"}}
		}))
		wait(2 * time.Second)
		if h := e.Status().Streams[0].Holds; len(h) == 0 || !strings.HasPrefix(h[0].Text, "later: ") || !strings.Contains(h[0].Text, "mqadmin updateTopic -c CLUSTER -t later") {
			t.Errorf("holds are %+v", h)
		}
		r.cluster.CreateTopic("later", 4)
		wait(2 * time.Second)
		if got := ownedOf(e, "later"); len(got) != 4 {
			t.Errorf("owns %v of the topic that was created", got)
		}
		r.stop(e)
	})
}
