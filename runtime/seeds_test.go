package runtime_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
	"github.com/streamd/streamd/sdk"
)

// The flags of `make simulate`.
var (
	seeds = flag.Int("seeds", 6, "stories to let happen to the whole engine")
	seed  = flag.Uint64("seed", 0, "only this story")
)

// Members of a group join, leave, are killed and cut off, their handlers crash and their broker refuses, as a seed draws it,
// in virtual time and over the real goroutines. In the end nothing is lost, everything is committed and each queue has one
// owner. (The schedule is Go's, so a seed tells the story and not each step; the simulation of the cores replays exactly.)
func TestSeeds(t *testing.T) {
	first, n := uint64(1), uint64(*seeds)
	if *seed != 0 {
		first, n = *seed, 1
	}
	for s := first; s < first+n; s++ {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) { newStory(t, s).tell() })
		})
	}
}

const storyQueues = 6

// story is what one seed lets happen.
type story struct {
	*rig
	mu      sync.Mutex // guards what follows: calls come from the engine's goroutines
	rng     *rand.Rand
	calm    bool
	down    time.Time            // until then the broker does not answer
	cut     map[string]time.Time // until then a client's calls fail
	dead    map[string]bool
	acked   map[string]int
	answer  map[string]bool // retried or rejected at least once
	members []*actor
	next    int
	put     int
}

// actor is one member with its plugin's process.
type actor struct {
	name    string
	engine  *runtime.Runtime
	handler *clustertest.Handler
}

func newStory(t *testing.T, seed uint64) *story {
	t.Helper()
	s := &story{rig: newRig(t, storyQueues, nil), rng: rand.New(rand.NewPCG(seed, 11)), cut: map[string]time.Time{}, dead: map[string]bool{}, acked: map[string]int{}, answer: map[string]bool{}}
	s.cluster.Delay = func(level int) time.Duration { return time.Duration(level) * 200 * time.Millisecond }
	s.cluster.Fault = s.fault
	return s
}

func (s *story) draw(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.IntN(n)
}

var errStory = errors.New("connection reset by peer")

// fault fails calls: of the dead and the cut off, of all when the broker is down, and some for no reason.
func (s *story) fault(_, client string, _ sdk.Queue) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.dead[client] || now.Before(s.cut[client]) || now.Before(s.down) || !s.calm && s.rng.IntN(100) < 2 {
		return errStory
	}
	return nil
}

func (s *story) join() {
	s.next++
	a := &actor{name: fmt.Sprintf("c%02d", s.next)}
	a.handler = &clustertest.Handler{Do: func(ctx context.Context, rec clustertest.Record) clustertest.Answer { return s.handle(ctx, a, rec) }}
	cfg := s.config(a.name)
	cfg.Handlers, cfg.Logger = handlers{a.handler}, slog.New(slog.DiscardHandler)
	engine, err := runtime.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := engine.Start(s.t.Context()); err != nil {
		s.cluster.Kill(a.name)
		return // it was refused: the operator's supervisor starts another
	}
	a.engine = engine
	s.members = append(s.members, a)
}

// handle is the plugin.
func (s *story) handle(ctx context.Context, a *actor, rec clustertest.Record) clustertest.Answer {
	nap(time.Duration(1+s.draw(60)) * time.Millisecond)
	s.mu.Lock()
	n, calm := s.rng.IntN(1000), s.calm
	s.mu.Unlock()
	switch {
	case n < 30:
		s.note(a, rec, false)
		return clustertest.Answer{Verdict: retryOnce}
	case n < 34:
		s.note(a, rec, false)
		return clustertest.Answer{Verdict: frame.Verdict{Kind: frame.VerdictReject, Class: "story", Text: "rejected"}}
	case n < 37 && !calm:
		return clustertest.Answer{Crash: true}
	case n < 40 && !calm: // slow
		select {
		case <-ctx.Done():
			return clustertest.Answer{Never: true}
		case <-time.After(5 * time.Second):
		}
	}
	s.note(a, rec, true)
	return clustertest.Answer{}
}

// note writes an answer down; a dead member gives none.
func (s *story) note(a *actor, rec clustertest.Record, acked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.dead[a.name]:
	case acked:
		s.acked[rec.Body]++
	default:
		s.answer[rec.Body] = true
	}
}

// kill takes a member away between two of its calls: nothing of it reaches the broker any more.
func (s *story) kill(a *actor) {
	s.mu.Lock()
	s.dead[a.name] = true
	s.mu.Unlock()
	s.members = slices.DeleteFunc(s.members, func(o *actor) bool { return o == a })
	a.handler.Lose(frame.CauseStopped, "killed")
	s.cluster.Kill(a.name)
	stopNow(s.t, a.engine)
}

// step lets one thing happen.
func (s *story) step() {
	one := func() *actor { return s.members[s.draw(len(s.members))] }
	switch n := s.draw(8); {
	case len(s.members) == 0, n == 0 && len(s.members) < 4:
		s.join()
	case n == 1 && len(s.members) > 1:
		s.kill(one())
	case n == 2 && len(s.members) > 1:
		a := one()
		s.members = slices.DeleteFunc(s.members, func(o *actor) bool { return o == a })
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
		_ = a.engine.Stop(ctx) // a last commit may not be confirmed; what that means is what the end checks
		cancel()
		s.cluster.Kill(a.name) // its connection ends, whether or not the broker was told
	case n == 3:
		s.mu.Lock()
		s.down = time.Now().Add(time.Duration(s.rng.IntN(8000)) * time.Millisecond)
		s.mu.Unlock()
	case n == 4:
		a := one()
		s.mu.Lock()
		s.cut[a.name] = time.Now().Add(time.Duration(s.rng.IntN(40)) * time.Second)
		s.mu.Unlock()
	case n == 5:
		one().handler.Lose(frame.CauseSwap, "swapped")
	case n == 6 && s.draw(3) == 0:
		s.reset()
	default:
		one().handler.Lose(frame.CauseCrash, "exit status 2")
	}
	s.check()
}

// reset sets a queue back, as an operator does.
func (s *story) reset() {
	q := clustertest.Queue(topicName, s.draw(storyQueues))
	if at := s.cluster.Committed(group, q); at > 0 {
		s.cluster.Reset(group, q, int64(s.draw(int(at))))
	}
}

// check holds at every moment: what is committed was answered.
func (s *story) check() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range storyQueues {
		q := clustertest.Queue(topicName, i)
		at := s.cluster.Committed(group, q)
		for _, m := range s.cluster.Messages(topicName) {
			if m.QueueID == q.ID && m.QueueOffset < at && s.acked[string(m.Body)] == 0 && !s.answer[string(m.Body)] {
				s.t.Errorf("%s is committed to %d, but what stands at %d was not answered", q, at, m.QueueOffset)
			}
		}
	}
}

func (s *story) produce() {
	for range s.draw(12) {
		s.put++
		s.cluster.Put(clustertest.Queue(topicName, s.draw(storyQueues)), rocketmq.OutgoingMessage{Body: []byte(fmt.Sprint(s.put))})
	}
}

// tell lets a minute of faults happen, then three of calm, and checks the end.
func (s *story) tell() {
	for range 1 + s.draw(3) {
		s.join()
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		s.produce()
		wait(time.Duration(50+s.draw(400)) * time.Millisecond)
		if s.draw(8) == 0 {
			s.step()
		}
	}
	s.mu.Lock()
	s.calm, s.down = true, time.Time{}
	clear(s.cut)
	s.mu.Unlock()
	if len(s.members) == 0 {
		s.join()
	}
	wait(3 * time.Minute)
	s.ends()
	for _, a := range s.members {
		s.stop(a.engine)
	}
}

func (s *story) ends() {
	s.t.Helper()
	s.check()
	s.committedAll(storyQueues)
	dead := map[string]bool{}
	for _, m := range s.cluster.Messages(wire.DLQTopic(group)) {
		dead[string(m.Body)] = true
	}
	for i := 1; i <= s.put; i++ {
		if id := fmt.Sprint(i); s.acked[id] == 0 && !dead[id] {
			s.t.Errorf("message %s is lost", id)
		}
	}
	owners := map[int32]int{}
	for _, a := range s.members {
		for _, id := range owned(a.engine) {
			owners[id]++
		}
	}
	for i := range int32(storyQueues) {
		if owners[i] != 1 {
			s.t.Errorf("queue %d has %d owners", i, owners[i])
		}
	}
	if s.t.Failed() {
		for _, a := range s.members {
			st := a.engine.Status().Streams[0]
			s.t.Logf("member %s holds %v", a.name, st.Holds)
			for _, q := range st.Queues {
				s.t.Logf("  %+v", q)
			}
		}
	}
}
