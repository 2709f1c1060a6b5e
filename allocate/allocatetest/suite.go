package allocatetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/streamd/streamd/allocate"
)

// Suite says what to test and what the strategy promises beyond its Needs.
type Suite struct {
	// New makes a fresh strategy, as a fresh process would. Required.
	New func() allocate.Strategy
	// Balanced: members differ by at most one queue.
	Balanced bool
	// MaxQueues and MaxMembers bound the exhaustive part, from 1 upward; 0 = 64.
	MaxQueues, MaxMembers int
	// Member and Broker name the n-th of each, for strategies that read names; nil = names of real clients, "broker-a".
	Member, Broker func(n int) string
}

// Run checks every promise of a strategy as a subtest: the answer is valid for every number of queues and members
// (cover, disjoint, membership; balance where promised), the same in fresh instances, after other questions, for every
// member that asks and for every order in which a broker lists, and the question is left as it was.
func Run(t *testing.T, s Suite) {
	t.Helper()
	s.setDefaults()
	for _, p := range s.promises() {
		t.Run(p.name, func(t *testing.T) {
			t.Helper()
			p.check(t)
		})
	}
}

// Verify checks the same promises without a test and returns what is broken, one error per promise; nil = nothing.
func Verify(s Suite) error {
	s.setDefaults()
	var broken []error
	for _, p := range s.promises() {
		if err := attempt(p); err != nil {
			broken = append(broken, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	return errors.Join(broken...)
}

type promise struct {
	name  string
	check func(reporter)
}

func (s *Suite) promises() []promise {
	return []promise{
		{"valid for every size", s.everySize},
		{"same answer again", s.sameAgain},
		{"same answer for every member", s.sameForAll},
		{"order of the lists does not matter", s.anyOrder},
		{"concurrent calls", s.concurrent},
	}
}

// reporter is what a check needs of a test. Fatalf does not return.
type reporter interface {
	Helper()
	Fatalf(format string, args ...any)
}

// attempt checks a promise outside of a test.
func attempt(p promise) (err error) {
	defer func() {
		if r := recover(); r != nil {
			failure, ok := r.(failure)
			if !ok {
				panic(r)
			}
			err = failure.err
		}
	}()
	p.check(thrower{})
	return nil
}

type failure struct{ err error }

type thrower struct{}

func (thrower) Helper() {}

func (thrower) Fatalf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

func (s *Suite) setDefaults() {
	if s.MaxQueues == 0 {
		s.MaxQueues = 64
	}
	if s.MaxMembers == 0 {
		s.MaxMembers = 64
	}
	if s.Member == nil {
		ids := Members(max(s.MaxMembers, 64))
		s.Member = func(n int) string { return ids[n] }
	}
	if s.Broker == nil {
		s.Broker = func(int) string { return "broker-a" }
	}
}

func (s *Suite) view(queues, members int) allocate.View {
	v := allocate.View{Group: "G", Topic: "Orders"}
	for i := range queues {
		v.Queues = append(v.Queues, allocate.Queue{Topic: "Orders", Broker: s.Broker(i), ID: int32(i)})
	}
	for i := range members {
		v.Members = append(v.Members, s.Member(i))
	}
	v.Self = v.Members[0]
	return v
}

func (s *Suite) input(t reporter, queues, members int) allocate.Input {
	t.Helper()
	return ask(t, s.view(queues, members))
}

func ask(t reporter, v allocate.View) allocate.Input {
	t.Helper()
	in, err := allocate.NewInput(v)
	if err != nil {
		t.Fatalf("making the question: %v", err)
	}
	return in
}

func answer(t reporter, strategy allocate.Strategy, in allocate.Input) []int32 {
	t.Helper()
	before := clone(in)
	owner, err := strategy.Allocate(in)
	if err != nil {
		t.Fatalf("%d queues, %d members: %v", len(in.Queues), len(in.Members), err)
	}
	if err := allocate.Check(in, owner, strategy.Needs()); err != nil {
		t.Fatalf("%d queues, %d members: %v", len(in.Queues), len(in.Members), err)
	}
	if !slices.Equal(in.Queues, before.Queues) || !slices.EqualFunc(in.Members, before.Members, sameID) {
		t.Fatalf("%d queues, %d members: the strategy changed the question", len(in.Queues), len(in.Members))
	}
	return owner
}

func clone(in allocate.Input) allocate.Input {
	in.Queues, in.Members = slices.Clone(in.Queues), slices.Clone(in.Members)
	return in
}

func sameID(a, b allocate.Member) bool { return a.ClientID == b.ClientID }

func (s *Suite) everySize(t reporter) {
	strategy := s.New()
	for queues := 1; queues <= s.MaxQueues; queues++ {
		for members := 1; members <= s.MaxMembers; members++ {
			in := s.input(t, queues, members)
			owner := answer(t, strategy, in)
			if !s.Balanced {
				continue
			}
			low, high := Spread(in, owner)
			if high-low > 1 {
				t.Fatalf("%d queues, %d members: members own %d to %d queues, which is no balance", queues, members, low, high)
			}
		}
	}
}

// Spread returns the smallest and the largest number of queues that a member owns.
func Spread(in allocate.Input, owner []int32) (low, high int) {
	counts := make([]int, len(in.Members))
	for _, o := range owner {
		if o >= 0 {
			counts[o]++
		}
	}
	return slices.Min(counts), slices.Max(counts)
}

// sizes are tried where every size would take too long.
func (s *Suite) sizes(f func(queues, members int)) {
	for _, queues := range []int{1, 2, 7, 16, 64} {
		for _, members := range []int{1, 2, 3, 5, 16, 64} {
			if queues <= s.MaxQueues && members <= s.MaxMembers {
				f(queues, members)
			}
		}
	}
}

func (s *Suite) sameAgain(t reporter) {
	used := s.New()
	s.sizes(func(queues, members int) {
		in := s.input(t, queues, members)
		first := answer(t, used, in)
		answer(t, used, s.input(t, (queues+3)%s.MaxQueues+1, (members+2)%s.MaxMembers+1))
		if again := answer(t, used, in); !slices.Equal(first, again) {
			t.Fatalf("%d queues, %d members: first %v, after another question %v", queues, members, first, again)
		}
		if fresh := answer(t, s.New(), in); !slices.Equal(first, fresh) {
			t.Fatalf("%d queues, %d members: %v, and from a fresh instance %v", queues, members, first, fresh)
		}
	})
}

func (s *Suite) sameForAll(t reporter) {
	strategy := s.New()
	s.sizes(func(queues, members int) {
		in := s.input(t, queues, members)
		first := answer(t, strategy, in)
		for self := range in.Members {
			in.Self = self
			other := answer(t, strategy, in)
			for i := range other {
				if first[i] != other[i] && first[i] != allocate.NotComputed && other[i] != allocate.NotComputed {
					t.Fatalf("%d queues, %d members: queue %s belongs to member %d or %d, as different members see it",
						queues, members, in.Queues[i], first[i], other[i])
				}
			}
		}
	})
}

func (s *Suite) anyOrder(t reporter) {
	strategy := s.New()
	random := rand.New(rand.NewPCG(1, 2))
	s.sizes(func(queues, members int) {
		v := s.view(queues, members)
		first := answer(t, strategy, ask(t, v))
		random.Shuffle(len(v.Queues), func(i, j int) { v.Queues[i], v.Queues[j] = v.Queues[j], v.Queues[i] })
		random.Shuffle(len(v.Members), func(i, j int) { v.Members[i], v.Members[j] = v.Members[j], v.Members[i] })
		if other := answer(t, strategy, ask(t, v)); !slices.Equal(first, other) {
			t.Fatalf("%d queues, %d members: %v, and with the lists in another order %v", queues, members, first, other)
		}
	})
}

func (s *Suite) concurrent(t reporter) {
	strategy := s.New()
	in := s.input(t, min(s.MaxQueues, 16), min(s.MaxMembers, 5))
	want := answer(t, strategy, in)
	var wait sync.WaitGroup
	errs := make(chan error, 8)
	for range cap(errs) {
		wait.Go(func() {
			got, err := strategy.Allocate(clone(in))
			if err == nil && !slices.Equal(got, want) {
				err = fmt.Errorf("answered %v, alone %v", got, want)
			}
			errs <- err
		})
	}
	wait.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Fatalf("asked by several at once: %v", err)
		}
	}
}
