package firstparty_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/allocate/allocatetest"
	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/firstparty"
	"github.com/streamd/streamd/internal/logtest"
	"github.com/streamd/streamd/runtime"
)

// host is a plugin host whose processes answer as a test says.
type host struct {
	opened []runtime.StrategySpec
	err    error
	solve  func(allocate.Input) ([]int32, error)
	asked  int
	closed int
}

func (h *host) Open(_ context.Context, spec runtime.StrategySpec) (runtime.Strategy, error) {
	h.opened = append(h.opened, spec)
	if h.err != nil {
		return nil, h.err
	}
	return &remote{host: h}, nil
}

type remote struct{ host *host }

func (*remote) Name() string                { return "remote" }
func (*remote) Needs() allocate.Needs       { return allocate.Needs{} }
func (*remote) Identity() allocate.Identity { return allocate.Identity{Strategy: "remote"} }
func (r *remote) Close() error              { r.host.closed++; return nil }
func (r *remote) Solve(_ context.Context, in allocate.Input) ([]int32, error) {
	r.host.asked++
	return r.host.solve(in)
}

func open(t *testing.T, h *host, log *logtest.Log) runtime.Strategy {
	t.Helper()
	s := firstparty.NewStrategies(h, slog.New(slog.NewTextHandler(log, nil)))
	strategy, err := s.Open(t.Context(), runtime.StrategySpec{Stream: "orders", Name: allocate.NameAveragely})
	if err != nil {
		t.Fatal(err)
	}
	return strategy
}

func TestProcessAnswersAndInProcessStandsIn(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		var log logtest.Log
		crash := &allocate.AskError{Kind: allocate.RuleCrash, Err: errors.New("exit status 2")}
		remoteOwner := []int32{1, 1, 0, 0} // not what averagely says, to tell who answered
		h := &host{err: errors.New("no such file")}
		s := open(t, h, &log)
		in := allocatetest.Input(t, allocatetest.Queues("T", "b", 4), []string{"c1", "c2"})
		ask := func(want []int32) {
			t.Helper()
			got, err := s.Solve(t.Context(), in)
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("answered %v, %v, want %v", got, err, want)
			}
		}
		local := []int32{0, 0, 1, 1}
		ask(local) // the process cannot be started
		if len(h.opened) != 1 || h.opened[0].Plugin != firstparty.PluginName || h.opened[0].Use != allocate.NameAveragely || h.opened[0].Name != "" {
			t.Fatalf("opened %+v", h.opened)
		}
		ask(local) // and is left alone for a while
		if len(h.opened) != 1 {
			t.Fatalf("opened %d times at once", len(h.opened))
		}
		<-time.After(11 * time.Second)
		h.err, h.solve = nil, func(allocate.Input) ([]int32, error) { return remoteOwner, nil }
		ask(remoteOwner)
		ask(remoteOwner)
		h.solve = func(allocate.Input) ([]int32, error) { return nil, crash }
		ask(local)
		ask(local)
		if h.asked != 3 {
			t.Errorf("a process that is gone was asked %d times", h.asked)
		}
		<-time.After(11 * time.Second)
		h.solve = func(allocate.Input) ([]int32, error) {
			return nil, &allocate.AskError{Kind: allocate.RuleTimeout, Err: context.DeadlineExceeded}
		}
		ask(local)
		<-time.After(11 * time.Second)
		late, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		h.solve = func(allocate.Input) ([]int32, error) {
			<-late.Done()
			return nil, late.Err()
		}
		if got, err := s.Solve(late, in); err != nil || !slices.Equal(got, local) {
			t.Errorf("after the caller's deadline: %v, %v, want %v", got, err, local)
		}
		if n := strings.Count(log.String(), "computed in process"); n != 2 {
			t.Errorf("told %d times, want once per change:\n%s", n, log.String())
		}
		if err := s.Close(); err != nil || h.closed != 1 {
			t.Errorf("closed %d times, %v", h.closed, err)
		}
	})
}

func TestRefusalsStand(t *testing.T) {
	var log logtest.Log
	h := &host{}
	s := open(t, h, &log)
	in := allocatetest.Input(t, allocatetest.Queues("T", "b", 4), []string{"c1", "c2"})
	for _, refusal := range []error{
		&allocate.AskError{Kind: allocate.RuleRefused, Err: errors.New("no")},
		&allocate.InvalidError{Rule: allocate.RuleTwoOwners},
	} {
		h.solve = func(allocate.Input) ([]int32, error) { return nil, refusal }
		if owner, err := s.Solve(t.Context(), in); !errors.Is(err, refusal) {
			t.Errorf("answered %v, %v, want %v", owner, err, refusal)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.solve = func(allocate.Input) ([]int32, error) {
		return nil, &allocate.AskError{Kind: allocate.RuleCrash, Err: errors.New("gone")}
	}
	if owner, err := s.Solve(ctx, in); !errors.Is(err, context.Canceled) {
		t.Errorf("answered %v, %v although the caller gave up", owner, err)
	}
}

func TestOpen(t *testing.T) {
	h := &host{solve: func(allocate.Input) ([]int32, error) { return nil, nil }}
	s := firstparty.NewStrategies(h, slog.New(slog.DiscardHandler))
	for _, spec := range []runtime.StrategySpec{
		{Stream: "orders", Name: "avg"},
		{Stream: "orders", Name: allocate.NameMachineRoom, Config: []byte(`{"rooms":[]}`)},
	} {
		if got, err := s.Open(t.Context(), spec); err == nil {
			t.Errorf("%+v opened %v", spec, got)
		}
	}
	if len(h.opened) != 0 {
		t.Errorf("asked the host for %+v", h.opened)
	}
	custom, err := s.Open(t.Context(), runtime.StrategySpec{Plugin: "acme", Use: "nearest"})
	if err != nil || custom.Name() != "remote" {
		t.Errorf("%v, %v", custom, err)
	}
	h.err = errors.New("not found")
	if _, err = s.Open(t.Context(), runtime.StrategySpec{Plugin: "acme", Use: "nearest"}); !errors.Is(err, h.err) {
		t.Error(err)
	}
	// Two members with the same config compute the same, whatever their processes do.
	a, errA := s.Open(t.Context(), runtime.StrategySpec{Name: allocate.NameConsistentHash, Config: []byte(`{"virtual_nodes":3}`)})
	b, errB := s.Open(t.Context(), runtime.StrategySpec{Name: allocate.NameConsistentHash, Config: []byte(`{"virtual_nodes":3}`)})
	if errA != nil || errB != nil || a.Identity() != b.Identity() {
		t.Error(a, errA, b, errB)
	}
}
