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
	seeds = flag.Int("seeds", 8, "stories to let happen to the whole engine")
	from  = flag.Uint64("from", 1, "the first of them")
	seed  = flag.Uint64("seed", 0, "only this story")
)

// Members of a group join, leave, are killed and cut off, reload and replace their handlers, which crash, while brokers refuse and
// answers are lost, as a seed draws it, in virtual time and over the real goroutines; with each order, and with outputs. The
// ledger judges all of it: nothing is lost, nothing is committed before it is settled with its outputs, order holds, and nothing
// is repeated without a cause. In the end everything is committed and each queue has one owner.
// (The schedule is Go's, so a seed tells the story and not each step; the simulation of the cores replays exactly.)
func TestSeeds(t *testing.T) {
	first, n := *from, uint64(*seeds)
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

// mood is what may happen in a story; each has what the ones before have.
type mood int

const (
	gentle mood = iota // members join and leave, reload and replace their handlers: no settled message comes again
	crash              // and handlers crash: nothing comes again but what ran in them
	flaky              // and calls fail and answers are lost: the same, where the order of the stream has locks
	rough              // and members are killed and cut off, the broker goes away, and an operator resets
)

// story is what one seed lets happen.
type story struct {
	*rig
	mood    mood
	order   runtime.Order
	turns   bool // the order changes: then it is not judged, nor what comes again
	ledger  *ledger
	mu      sync.Mutex // guards what follows: calls come from the engine's goroutines
	rng     *rand.Rand
	calm    bool
	down    time.Time            // until then the broker does not answer
	refuses time.Time            // until then it takes no outputs
	cut     map[string]time.Time // until then a client's calls fail
	dead    map[string]bool
	members []*actor
	joined  time.Time // when the last one did
	next    int
	version int
}

// actor is one member with its plugin's process.
type actor struct {
	name    string
	engine  *runtime.Runtime
	handler *clustertest.Handler
	config  runtime.Config
}

func newStory(t *testing.T, seed uint64) *story {
	t.Helper()
	s := &story{rig: newRig(t, storyQueues, nil), rng: rand.New(rand.NewPCG(seed, 11)), cut: map[string]time.Time{}, dead: map[string]bool{}}
	s.mood = [...]mood{gentle, crash, flaky, rough, rough, rough}[s.draw(6)]
	s.order, s.turns = s.anOrder(), s.draw(8) == 0
	s.ledger = newLedger(t, s.cluster, s.order)
	// Without locks a hand-over waits for 10 s, and what takes longer comes again: outputs that are refused may.
	s.ledger.exact = s.mood < flaky || s.mood == flaky && s.ledger.ordered()
	if s.turns {
		s.ledger.order, s.ledger.exact = runtime.OrderNone, false
	}
	s.cluster.Begin(clustertest.Queue(wire.RetryTopic(group), 0), retriesFrom)
	s.cluster.SetCommitted(group, clustertest.Queue(wire.RetryTopic(group), 0), retriesFrom)
	s.cluster.CreateTopic(outTopic, 1)
	s.cluster.Delay = func(level int) time.Duration { return time.Duration(level) * 200 * time.Millisecond }
	s.cluster.Fault = s.fault
	return s
}

func (s *story) anOrder() runtime.Order {
	return [...]runtime.Order{runtime.OrderNone, runtime.OrderQueue, runtime.OrderKey}[s.draw(3)]
}

func (s *story) draw(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.IntN(n)
}

var errStory = errors.New("connection reset by peer")

// fault fails calls: of the dead and the cut off, of all when the broker is down, and some for no reason.
func (s *story) fault(op, client string, q sdk.Queue) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if op == "PeerInfo" && s.mood < rough {
		return nil // a member that does not answer is not waited for: two may have a queue then
	}
	refused := op == "Send" && q.Topic == outTopic && (now.Before(s.refuses) || s.odds(10))
	if s.dead[client] || now.Before(s.cut[client]) || now.Before(s.down) || refused || s.odds(2) {
		return errStory
	}
	return nil
}

// odds tells whether a call fails in so many of a hundred cases; mu is held.
func (s *story) odds(percent int) bool {
	return s.mood >= flaky && !s.calm && s.rng.IntN(100) < percent
}

// storyBroker tells the ledger what a client stores, and loses some of the answers.
type storyBroker struct {
	*clustertest.Client
	s *story
}

func (b storyBroker) lose(err error) (lost error) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if err == nil && b.s.odds(1) {
		return errStory
	}
	return nil
}

// Committed implements runtime.Broker.
func (b storyBroker) Committed(ctx context.Context, group string, q sdk.Queue) (int64, bool, error) {
	offset, ok, err := b.Client.Committed(ctx, group, q)
	if err == nil {
		b.s.ledger.starts(b.ClientID(), q, offset)
	}
	return offset, ok, err //nolint:wrapcheck // the cluster's
}

// Commit implements runtime.Broker.
func (b storyBroker) Commit(ctx context.Context, group string, q sdk.Queue, offset int64) (bool, error) {
	b.s.ledger.commit(q, offset)
	reset, err := b.Client.Commit(ctx, group, q, offset)
	if lost := b.lose(err); lost != nil {
		return false, lost
	}
	return reset, err //nolint:wrapcheck // the cluster's
}

// SendBack implements runtime.Broker.
func (b storyBroker) SendBack(ctx context.Context, req *rocketmq.SendBackRequest) error {
	err := b.Client.SendBack(ctx, req)
	if err != nil {
		return err //nolint:wrapcheck // the cluster's
	}
	lost := b.lose(nil)
	b.s.ledger.stored("", b.s.cluster.BodyAt(req.LogOffset), lost != nil)
	return lost
}

// Send implements runtime.Broker.
func (b storyBroker) Send(ctx context.Context, m *rocketmq.OutgoingMessage) (rocketmq.SendResult, error) {
	res, err := b.Client.Send(ctx, m)
	if err != nil {
		return res, err //nolint:wrapcheck // the cluster's
	}
	lost := b.lose(nil)
	b.s.ledger.stored(m.Topic, string(m.Body), lost != nil)
	if lost != nil {
		return rocketmq.SendResult{}, lost
	}
	return res, nil
}

// SendBatch implements runtime.Broker.
func (b storyBroker) SendBatch(ctx context.Context, _ string, ms []*rocketmq.OutgoingMessage) ([]rocketmq.SendResult, error) {
	results := make([]rocketmq.SendResult, len(ms))
	var failed error
	for i, m := range ms {
		var err error
		if results[i], err = b.Send(ctx, m); err != nil {
			failed = err
		}
	}
	return results, failed
}

func (s *story) join() {
	if since := time.Since(s.joined); s.mood < rough && since < time.Second {
		wait(time.Second - since) // two that begin in one moment may both find a queue free, and repeat what is in it
	}
	s.joined = time.Now()
	s.next++
	a := &actor{name: fmt.Sprintf("c%02d", s.next)}
	s.say("%s joins", a.name)
	a.handler = &clustertest.Handler{
		Do: func(ctx context.Context, rec clustertest.Record) clustertest.Answer {
			run := s.ledger.begin(a.name, rec)
			defer s.ledger.returns(run)
			return s.handle(ctx, run)
		},
		Told: func(rec clustertest.Record, answer clustertest.Answer) {
			s.mu.Lock()
			dead := s.dead[a.name]
			s.mu.Unlock()
			if !dead { // nobody hears it
				s.ledger.told(a.name, rec, answer)
			}
		},
	}
	a.config = s.config(a.name, ordered(s.order), func(c *runtime.StreamConfig) {
		c.OutputTopic, c.Retry.Backoff = outTopic, runtime.Backoff{First: 300 * time.Millisecond, Most: 2 * time.Second}
		s.settings(c)
	})
	a.config.Brokers = map[string]runtime.Broker{"main": storyBroker{s.cluster.Client(a.name), s}}
	a.config.Handlers = handlers{a.handler}
	if *seed == 0 {
		a.config.Logger = slog.New(slog.DiscardHandler)
	} else {
		a.config.Logger = a.config.Logger.With("member", a.name)
	}
	engine, err := runtime.New(a.config)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := engine.Start(s.t.Context()); err != nil {
		if s.mood < flaky {
			s.t.Errorf("%s cannot start: %v", a.name, err)
		}
		s.cluster.Kill(a.name)
		return // it was refused: the operator's supervisor starts another
	}
	a.engine = engine
	s.members = append(s.members, a)
}

// settings draws some of a stream's settings.
func (s *story) settings(c *runtime.StreamConfig) {
	of := func(values ...int) int { return values[s.draw(len(values))] }
	c.Batch.Max, c.Pull.Messages, c.Retry.MaxRetries = of(1, 4, 32), of(4, 32), of(1, 16)
	c.Window.Messages, c.Window.Span = of(8, 1000), int64(of(20, 2000))
	c.Commit.Every, c.Commit.Count = time.Duration(of(50, 1000))*time.Millisecond, of(3, 1000)
	if s.draw(2) == 0 { // these take new lanes
		c.Concurrency, c.Shards = of(2, 20), of(1, 1, 3)
	}
}

// reload applies changed settings to a member, once or twice in a row; with a new version the handler is replaced.
func (s *story) reload(a *actor, change func(*runtime.StreamConfig)) {
	for range 1 + s.draw(4)/3 {
		next := a.config
		next.Streams = slices.Clone(next.Streams)
		change(&next.Streams[0])
		s.say("%s reloads, handler %q", a.name, next.Streams[0].HandlerVersion)
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
		err := a.engine.Apply(ctx, next)
		cancel()
		switch {
		case err == nil:
			a.config = next
		case s.mood < flaky:
			s.t.Errorf("%s cannot reload: %v", a.name, err)
		}
	}
}

func (s *story) swap(c *runtime.StreamConfig) {
	s.version++
	c.HandlerVersion = fmt.Sprint("v", s.version)
}

// handle is the plugin.
func (s *story) handle(ctx context.Context, run *run) clustertest.Answer {
	nap(time.Duration(1+s.draw(60)) * time.Millisecond)
	s.mu.Lock()
	n, calm := s.rng.IntN(1000), s.calm
	s.mu.Unlock()
	switch {
	case n < 30:
		return clustertest.Answer{Verdict: retryOnce}
	case n < 34:
		return clustertest.Answer{Verdict: frame.Verdict{Kind: frame.VerdictReject, Class: "story", Text: "rejected"}}
	case n < 37 && !calm && s.mood >= crash:
		s.ledger.ended(run.member)
		return clustertest.Answer{Crash: true}
	case n < 40 && !calm: // slow
		took := 5 * time.Second
		if s.ledger.exact && !s.ledger.ordered() {
			took = 1500 * time.Millisecond
		}
		select {
		case <-ctx.Done(): // a handler that goes on would hold up its strand
			return clustertest.Answer{Never: !s.ledger.ordered() && !s.turns, Verdict: retryOnce}
		case <-time.After(took):
		}
	}
	return run.e.answer()
}

// without takes a member off the list.
func (s *story) without(a *actor) {
	s.members = slices.DeleteFunc(s.members, func(o *actor) bool { return o == a })
}

// kill takes a member away between two of its calls: nothing of it reaches the broker any more.
func (s *story) kill(a *actor) {
	s.mu.Lock()
	s.dead[a.name] = true
	s.mu.Unlock()
	s.say("%s is killed", a.name)
	s.without(a)
	a.handler.Lose(frame.CauseStopped, "killed")
	s.cluster.Kill(a.name)
	stopNow(s.t, a.engine)
}

// leave stops a member. In the faults of a story a last commit may not be confirmed; what that means is what the ledger tells.
func (s *story) leave(a *actor) {
	s.say("%s leaves", a.name)
	s.without(a)
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	if err := a.engine.Stop(ctx); err != nil && s.mood < flaky {
		s.t.Errorf("%s does not stop cleanly: %v", a.name, err)
	}
	s.cluster.Kill(a.name) // its connection ends, whether or not the broker was told
}

// say tells a story that is told alone.
func (s *story) say(format string, a ...any) {
	if *seed != 0 {
		s.t.Logf("%s STORY "+format, append([]any{time.Now().Format("15:04:05.000")}, a...)...)
	}
}

// step lets one thing happen.
func (s *story) step() {
	if len(s.members) == 0 {
		s.join()
		return
	}
	one := s.members[s.draw(len(s.members))]
	last := [...]int{gentle: 7, crash: 10, flaky: 12, rough: 17}
	switch n := s.draw(last[s.mood]); {
	case n < 2 && len(s.members) < 4:
		s.join()
	case n == 2 && len(s.members) > 1:
		s.leave(one)
	case n == 3 && s.turns:
		s.order = s.anOrder() // for all members, as it has to be
		for _, a := range s.members {
			s.reload(a, ordered(s.order))
		}
	case n == 3:
		s.reload(one, s.settings)
	case n == 4 || n == 5:
		s.reload(one, s.swap)
	case n == 6:
		for _, a := range s.members { // a new version for all
			s.reload(a, s.swap)
		}
	case n == 7 || n == 8:
		s.ledger.ended(one.name)
		one.handler.Lose(frame.CauseCrash, "exit status 2")
	case n == 9:
		s.ledger.ended(one.name)
		one.handler.Lose(frame.CauseSwap, "swapped")
	case n == 10 || n == 11:
		s.fails(&s.refuses, [...]int{flaky: 3, rough: 20}[s.mood])
	case n == 12 && len(s.members) > 1:
		s.kill(one)
	case n == 13 || n == 14:
		until := time.Time{}
		s.fails(&until, 40)
		s.mu.Lock()
		s.cut[one.name] = until
		s.mu.Unlock()
	case n == 15:
		s.fails(&s.down, 8)
	case n == 16 && s.draw(3) == 0:
		s.reset()
	}
}

// fails draws until when something fails.
func (s *story) fails(until *time.Time, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*until = time.Now().Add(time.Duration(s.rng.IntN(1000*most)) * time.Millisecond)
	s.say("something fails until %s", until.Format("15:04:05.000"))
}

// reset sets a queue back, as an operator does.
func (s *story) reset() {
	q := clustertest.Queue(topicName, s.draw(storyQueues))
	if at := s.cluster.Committed(group, q); at > 0 {
		s.cluster.Reset(group, q, int64(s.draw(int(at))))
	}
}

// produce puts some messages, and many at times: with a sharding key, with keys, or with neither.
func (s *story) produce() {
	n := s.draw(12)
	if s.draw(20) == 0 {
		n *= 6
	}
	for range n {
		m := rocketmq.OutgoingMessage{}
		switch key := fmt.Sprint("k", s.draw(3)); s.draw(4) {
		case 0:
			m.Keys = []string{key, "also"}
		case 1:
		default:
			m.Properties = map[string]string{"__SHARDINGKEY": key}
		}
		s.ledger.produce(clustertest.Queue(topicName, s.draw(storyQueues)), m)
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
		if s.draw(6) == 0 {
			s.step()
		}
	}
	s.mu.Lock()
	s.calm, s.down, s.refuses = true, time.Time{}, time.Time{}
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
	s.committedAll(storyQueues)
	retries := clustertest.Queue(wire.RetryTopic(group), 0)
	if at, end := s.cluster.Committed(group, retries), s.cluster.End(retries); at != end && end > 0 {
		s.t.Errorf("the retry topic is committed to %d of %d", at, end)
	}
	s.ledger.end()
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
	s.t.Logf("order %s (turns: %t), mood %d: %d messages, %d deliveries, %d tries in place, %d repeats, %d commits", s.order, s.turns, s.mood, len(s.ledger.put), s.ledger.begun, s.ledger.retried, s.ledger.repeated, s.ledger.commits)
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
