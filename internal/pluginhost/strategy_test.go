package pluginhost

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/allocate/allocatetest"
	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// solverFake is a process that answers Solve as a test says.
type solverFake struct {
	pluginv1.PluginClient
	needs   *pluginv1.Needs
	exited  chan struct{}
	absent  error
	answer  func(context.Context, *pluginv1.SolveRequest) (*pluginv1.SolveResponse, error)
	request *pluginv1.SolveRequest
}

func (f *solverFake) Acquire(ctx context.Context) (SolverProcess, error) {
	if f.absent != nil {
		<-ctx.Done()
		return SolverProcess{}, f.absent
	}
	return SolverProcess{Client: f, Plugin: "acme", Version: "1.0", Checksum: "abc", Generation: 3, Needs: f.needs, Exited: f.exited}, nil
}

func (f *solverFake) Solve(ctx context.Context, request *pluginv1.SolveRequest, _ ...grpc.CallOption) (*pluginv1.SolveResponse, error) {
	f.request = request
	return f.answer(ctx, request)
}

func openFake(t *testing.T, f *solverFake) *Strategy {
	t.Helper()
	f.exited = make(chan struct{})
	s, err := OpenStrategy(t.Context(), StrategyConfig{Instance: "orders", Name: "acme/nearest", Config: []byte(`{}`)}, f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func twoMembers(t *testing.T) allocate.Input {
	t.Helper()
	return allocatetest.Input(t, allocatetest.Queues("T", "b", 3), []string{"c1@1@zone=a", "c2@1"})
}

func TestStrategy_asksTheProcess(t *testing.T) {
	f := &solverFake{
		needs: &pluginv1.Needs{Previous: true, Attributes: []string{"zone"}},
		answer: func(context.Context, *pluginv1.SolveRequest) (*pluginv1.SolveResponse, error) {
			return &pluginv1.SolveResponse{Owner: []int32{0, 1, 0}}, nil
		},
	}
	s := openFake(t, f)
	if n := s.Needs(); !n.Previous || n.PerMember || !slices.Equal(n.Attributes, []string{"zone"}) {
		t.Errorf("needs %+v", n)
	}
	if id := s.Identity(); id.Strategy != "acme/nearest" || id.Version != "1.0+abc" || id.Config != allocate.HashConfig([]byte(`{}`)) {
		t.Errorf("identity %+v", id)
	}
	in := twoMembers(t)
	in.Previous = []int32{0, 0, -1}
	owner, err := s.Solve(t.Context(), in)
	if err != nil || !slices.Equal(owner, []int32{0, 1, 0}) {
		t.Fatal(owner, err)
	}
	r := f.request
	if r.GetInstance() != "orders" || r.GetGroup() != "G" || r.GetTopic() != "T" || len(r.GetQueues()) != 3 || r.GetQueues()[2].GetId() != 2 ||
		r.GetMembers()[0].GetAttributes()["zone"] != "a" || !slices.Equal(r.GetPrevious(), []int32{0, 0, -1}) || len(r.GetAsk()) != 0 {
		t.Errorf("asked %v", r)
	}
}

func TestStrategy_failuresAreClassified(t *testing.T) {
	const none allocate.Rule = ""
	cases := []struct {
		name   string
		answer func(context.Context, *pluginv1.SolveRequest) (*pluginv1.SolveResponse, error)
		dies   bool
		absent error
		gaveUp bool
		want   allocate.Rule
		text   string
	}{
		{name: "thinks for 10 s", want: allocate.RuleTimeout, text: "generation 3", answer: func(ctx context.Context, _ *pluginv1.SolveRequest) (*pluginv1.SolveResponse, error) {
			select {
			case <-ctx.Done():
				return nil, status.FromContextError(ctx.Err()).Err()
			case <-time.After(10 * time.Second):
				return &pluginv1.SolveResponse{}, nil
			}
		}},
		{name: "dies", want: allocate.RuleCrash, text: "connection reset", answer: fails(codes.Unavailable, "connection reset")},
		{name: "dies in the middle", dies: true, want: allocate.RuleCrash, text: "broken", answer: fails(codes.Internal, "broken")},
		{name: "says no", want: allocate.RuleRefused, text: "no map of zones", answer: func(context.Context, *pluginv1.SolveRequest) (*pluginv1.SolveResponse, error) {
			return &pluginv1.SolveResponse{Error: "no map of zones"}, nil
		}},
		{name: "is no strategy", want: allocate.RuleRefused, text: "not a strategy", answer: fails(codes.Unimplemented, "not a strategy")},
		{name: "answers too much", want: allocate.RuleRefused, text: "too large", answer: fails(codes.ResourceExhausted, "too large")},
		{name: "no process", want: allocate.RuleCrash, text: "backing off", absent: errors.New("backing off after exit status 2")},
		{name: "the caller gives up", gaveUp: true, want: none, text: "no answer (another round is wanted)", answer: fails(codes.Canceled, "canceled")},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				f := &solverFake{answer: c.answer}
				s := openFake(t, f)
				f.absent = c.absent
				if c.dies {
					close(f.exited)
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if c.gaveUp {
					cancel(errors.New("another round is wanted"))
				}
				begun := time.Now()
				owner, err := s.Solve(ctx, twoMembers(t))
				if owner != nil || err == nil || allocate.RuleOf(err) != c.want || !strings.Contains(err.Error(), c.text) {
					t.Errorf("%v, %v (rule %q), want rule %q and %q", owner, err, allocate.RuleOf(err), c.want, c.text)
				}
				if took := time.Since(begun); took > SolveDeadline {
					t.Errorf("took %s, the deadline is %s", took, SolveDeadline)
				}
			})
		})
	}
}

func fails(code codes.Code, text string) func(context.Context, *pluginv1.SolveRequest) (*pluginv1.SolveResponse, error) {
	return func(context.Context, *pluginv1.SolveRequest) (*pluginv1.SolveResponse, error) {
		return nil, status.Error(code, text)
	}
}

func TestStrategy_judgesClaims(t *testing.T) {
	cases := []struct {
		name   string
		claims []*pluginv1.Claim
		want   []int32
		rule   allocate.Rule
		text   string
	}{
		{"sound", []*pluginv1.Claim{{Member: 1, Queue: []uint32{2}}, {Member: 0, Queue: []uint32{0, 1}}}, []int32{0, 0, 1}, "", ""},
		{"two owners", []*pluginv1.Claim{{Member: 0, Queue: []uint32{0, 1}}, {Member: 1, Queue: []uint32{1, 2}}}, nil, allocate.RuleTwoOwners, "queue T/b/1 has two owners: c1@1@zone=a and c2@1"},
		{"repeats", []*pluginv1.Claim{{Member: 0, Queue: []uint32{0, 0}}, {Member: 1, Queue: []uint32{1, 2}}}, nil, allocate.RuleRepeated, "queue T/b/0 stands twice"},
		{"forgets", []*pluginv1.Claim{{Member: 0, Queue: []uint32{0}}, {Member: 1, Queue: []uint32{2}}}, nil, allocate.RuleUncovered, "queue T/b/1 has no owner"},
		{"invents", []*pluginv1.Claim{{Member: 0, Foreign: []*pluginv1.Queue{{Topic: "T", Broker: "x", Id: 9}}}, {Member: 1}}, nil, allocate.RuleForeignQueue, "queue T/x/9"},
		{"one member missing", []*pluginv1.Claim{{Member: 0, Queue: []uint32{0, 1, 2}}}, nil, allocate.RuleLength, "no claim for member c2@1"},
		{"one member twice", []*pluginv1.Claim{{Member: 0}, {Member: 0}}, nil, allocate.RuleLength, "member 0"},
		{"an unknown member", []*pluginv1.Claim{{Member: 7}}, nil, allocate.RuleLength, "member 7"},
		{"an unknown index", []*pluginv1.Claim{{Member: 0, Queue: []uint32{3}}}, nil, allocate.RuleLength, "queue 3 of 3"},
		{"nothing", nil, nil, allocate.RuleLength, "no claim"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := &solverFake{needs: &pluginv1.Needs{PerMember: true}, answer: func(context.Context, *pluginv1.SolveRequest) (*pluginv1.SolveResponse, error) {
				return &pluginv1.SolveResponse{Claims: c.claims}, nil
			}}
			owner, err := openFake(t, f).Solve(t.Context(), twoMembers(t))
			if !slices.Equal(f.request.GetAsk(), []int32{1, 0}) {
				t.Errorf("asked for %v, want both, self last", f.request.GetAsk())
			}
			if allocate.RuleOf(err) != c.rule || c.rule == "" && !slices.Equal(owner, c.want) || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, %v, want %v or %q", owner, err, c.want, c.text)
			}
		})
	}
}

func TestStrategy_refusesAbsurdQuestions(t *testing.T) {
	f := &solverFake{}
	in := twoMembers(t)
	in.Members[1].ClientID = strings.Repeat("x", maxQuestion)
	_, err := openFake(t, f).Solve(t.Context(), in)
	if allocate.RuleOf(err) != allocate.RuleRefused || f.request != nil {
		t.Errorf("sent it, or %v", err)
	}
}

func TestOpenStrategy_saysWhyThereIsNoProcess(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	absent := errors.New("not executable")
	if s, err := OpenStrategy(ctx, StrategyConfig{Name: "acme/nearest"}, &solverFake{absent: absent}); !errors.Is(err, absent) {
		t.Error(s, err)
	}
}
