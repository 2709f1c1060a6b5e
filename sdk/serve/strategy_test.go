package serve_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/pluginv1"
	"github.com/streamd/streamd/sdk/serve"
)

type share func(self string, queues []sdk.Queue, members []string) ([]sdk.Queue, error)

func (share) Name() string { return "share" }
func (f share) Allocate(_, self string, queues []sdk.Queue, members []string) ([]sdk.Queue, error) {
	return f(self, queues, members)
}

type picky struct{ share }

func (picky) Needs() sdk.Needs { return sdk.Needs{Partial: true, Attributes: []string{"zone"}} }

type whole func(sdk.StrategyInput) ([]int32, error)

func (whole) Name() string                                     { return "whole" }
func (whole) Needs() sdk.Needs                                 { return sdk.Needs{Previous: true} }
func (f whole) Allocate(in sdk.StrategyInput) ([]int32, error) { return f(in) }

func solver[S any](t *testing.T, s S) serve.Solver {
	t.Helper()
	spec := serve.Strategy("s", func(context.Context, struct{}, sdk.Env) (S, error) { return s, nil })
	if spec.Kind != sdk.KindStrategy {
		t.Fatalf("kind %d", spec.Kind)
	}
	instance, diagnostics := spec.New(t.Context(), nil, sdk.Env{})
	built, ok := instance.(serve.Solver)
	if !ok {
		t.Fatalf("built %T, %v", instance, diagnostics)
	}
	return built
}

func question() *pluginv1.SolveRequest {
	return &pluginv1.SolveRequest{
		Group: "G", Topic: "T", Self: 1,
		Queues:  []*pluginv1.Queue{{Topic: "T", Broker: "b", Id: 0}, {Topic: "T", Broker: "b", Id: 1}, {Topic: "T", Broker: "b", Id: 2}},
		Members: []*pluginv1.Member{{ClientId: "c1", Attributes: map[string]string{"zone": "a"}}, {ClientId: "c2"}},
	}
}

func TestWholeMapStrategy(t *testing.T) {
	s := solver(t, whole(func(in sdk.StrategyInput) ([]int32, error) {
		if in.Group != "G" || in.Self != 1 || in.Members[0].Attributes["zone"] != "a" || in.Queues[2] != (sdk.Queue{Topic: "T", Broker: "b", ID: 2}) {
			return nil, errors.New("garbled question")
		}
		return []int32{0, 1, 0}, nil
	}))
	response, err := s.Solve(t.Context(), question())
	if err != nil || !slices.Equal(response.GetOwner(), []int32{0, 1, 0}) {
		t.Errorf("%v, %v", response, err)
	}
}

func TestMemberStrategyClaimsWhatItSays(t *testing.T) {
	foreign := sdk.Queue{Topic: "T", Broker: "x", ID: 9}
	s := solver(t, share(func(self string, queues []sdk.Queue, members []string) ([]sdk.Queue, error) {
		defer clear(queues) // the slices are the author's to spoil
		defer clear(members)
		if self == "c1" {
			return []sdk.Queue{queues[2], queues[0], queues[2]}, nil
		}
		return []sdk.Queue{foreign}, nil
	}))
	request := question()
	request.Ask = []int32{1, 0}
	response, err := s.Solve(t.Context(), request)
	if err != nil || len(response.GetClaims()) != 2 {
		t.Fatal(response, err)
	}
	second, first := response.GetClaims()[0], response.GetClaims()[1]
	if second.GetMember() != 1 || len(second.GetForeign()) != 1 || second.GetForeign()[0].GetBroker() != "x" {
		t.Errorf("claim of c2: %v", second)
	}
	if first.GetMember() != 0 || !slices.Equal(first.GetQueue(), []uint32{2, 0, 2}) {
		t.Errorf("claim of c1: %v", first)
	}
	if response, err = s.Solve(t.Context(), question()); err != nil || len(response.GetClaims()) != 1 || response.GetClaims()[0].GetMember() != 1 {
		t.Errorf("without ask: %v, %v, want self's claim", response, err)
	}
}

func TestNeedsOfSolvers(t *testing.T) {
	needs := func(s serve.Solver) sdk.Needs {
		return s.(interface{ Needs() sdk.Needs }).Needs()
	}
	if n := needs(solver(t, share(nil))); !n.PerMember || n.Partial {
		t.Errorf("%+v", n)
	}
	if n := needs(solver(t, picky{})); !n.PerMember || !n.Partial || !slices.Equal(n.Attributes, []string{"zone"}) {
		t.Errorf("%+v", n)
	}
	if n := needs(solver(t, whole(nil))); n.PerMember || !n.Previous {
		t.Errorf("%+v", n)
	}
}

// What goes wrong in the author's code, and questions that could only make it stumble, are errors, never a dead process.
func TestRefusals(t *testing.T) {
	panics := whole(func(in sdk.StrategyInput) ([]int32, error) { return []int32{in.Previous[7]}, nil })
	fails := share(func(string, []sdk.Queue, []string) ([]sdk.Queue, error) { return nil, errors.New("no map of zones") })
	cases := map[string]struct {
		solver serve.Solver
		change func(*pluginv1.SolveRequest)
		text   string
	}{
		"panic":          {solver(t, panics), nil, "panic: "},
		"panic's place":  {solver(t, panics), nil, "strategy_test.go"},
		"error":          {solver(t, fails), nil, "computing the share of c2: no map of zones"},
		"no queues":      {solver(t, panics), func(r *pluginv1.SolveRequest) { r.Queues = nil }, "0 queues"},
		"no members":     {solver(t, panics), func(r *pluginv1.SolveRequest) { r.Members = nil }, "0 members"},
		"self too high":  {solver(t, panics), func(r *pluginv1.SolveRequest) { r.Self = 2 }, "self is 2"},
		"self negative":  {solver(t, panics), func(r *pluginv1.SolveRequest) { r.Self = -1 }, "self is -1"},
		"previous short": {solver(t, panics), func(r *pluginv1.SolveRequest) { r.Previous = []int32{0} }, "1 previous owners"},
		"ask for nobody": {solver(t, fails), func(r *pluginv1.SolveRequest) { r.Ask = []int32{5} }, "member 5 of 2"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			request := question()
			if c.change != nil {
				c.change(request)
			}
			if response, err := c.solver.Solve(t.Context(), request); err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, %v, want an error with %q", response, err, c.text)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if response, err := solver(t, fails).Solve(ctx, question()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v after the caller gave up", response, err)
	}
}

func TestStrategyWantsAStrategy(t *testing.T) {
	defer func() {
		if r, ok := recover().(string); !ok || !strings.Contains(r, "sdk.MemberStrategy") {
			t.Errorf("panicked with %v, want the two contracts named", r)
		}
	}()
	serve.Strategy("s", func(context.Context, struct{}, sdk.Env) (int, error) { return 0, nil })
}

func TestBuildErrorsAreDiagnostics(t *testing.T) {
	spec := serve.Strategy("s", func(context.Context, struct{}, sdk.Env) (share, error) { return nil, errors.New("no such file") })
	instance, diagnostics := spec.New(t.Context(), nil, sdk.Env{})
	if instance != nil || len(diagnostics) != 1 || !strings.Contains(diagnostics[0].Text, "no such file") {
		t.Errorf("%v, %v", instance, diagnostics)
	}
	empty := serve.Strategy("s", func(context.Context, struct{}, sdk.Env) (sdk.Strategy, error) { return nil, nil })
	if instance, diagnostics = empty.New(t.Context(), nil, sdk.Env{}); instance != nil || len(diagnostics) != 1 {
		t.Errorf("%v, %v", instance, diagnostics)
	}
}
