package serve

import (
	"context"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// Strategy offers an allocation strategy under a name. C is its config, as for sdk.Component. S is an sdk.MemberStrategy
// (the share of one member, the smallest contract) or an sdk.Strategy (all members at once).
//
// Strategy panics when S is neither or C cannot be a config, as regexp.MustCompile does: it is called with constants in
// main.
func Strategy[C, S any](name string, build func(context.Context, C, sdk.Env) (S, error)) sdk.Spec {
	kind := reflect.TypeFor[S]()
	whole, single := kind.Implements(reflect.TypeFor[sdk.Strategy]()), kind.Implements(reflect.TypeFor[sdk.MemberStrategy]())
	if !whole && !single {
		panic(fmt.Sprintf("strategy %q: %s is no strategy: give it the methods of sdk.MemberStrategy (Name, Allocate for one member) "+
			"or of sdk.Strategy (Name, Needs, Allocate for all)", name, kind))
	}
	spec := sdk.Configured(name, func(ctx context.Context, config C, env sdk.Env) (Solver, error) {
		built, err := build(ctx, config, env)
		if err != nil {
			return nil, err
		}
		if s, ok := any(built).(sdk.Strategy); ok {
			return &strategySolver{s, s.Needs()}, nil
		}
		if s, ok := any(built).(sdk.MemberStrategy); ok {
			return newMemberSolver(s), nil
		}
		return nil, fmt.Errorf("strategy %s: its build function returned nothing", name)
	})
	spec.Kind = sdk.KindStrategy
	spec.Needs.PerMember = single // the rest is known once an instance is configured
	return spec
}

// strategySolver answers Solve with a strategy that maps every queue at once.
type strategySolver struct {
	strategy sdk.Strategy
	needs    sdk.Needs
}

// Needs is what the configured strategy reads and promises; the answer to Configure carries it.
func (s *strategySolver) Needs() sdk.Needs { return s.needs }

// Close closes the strategy if it can be closed.
func (s *strategySolver) Close() error { return closeStrategy(s.strategy) }

func (s *strategySolver) Solve(_ context.Context, request *pluginv1.SolveRequest) (*pluginv1.SolveResponse, error) {
	in, err := strategyInput(request)
	if err != nil {
		return nil, err
	}
	owner, err := authored(func() ([]int32, error) { return s.strategy.Allocate(in) })
	if err != nil {
		return nil, err
	}
	return &pluginv1.SolveResponse{Owner: owner}, nil
}

// memberSolver answers Solve with a strategy that knows one member's share: it is asked for each member of request.Ask.
// What it claims is passed on as it is, mistakes included: the host judges it and names the broken rule.
type memberSolver struct {
	strategy sdk.MemberStrategy
	needs    sdk.Needs
}

// Needs is what the configured strategy reads and promises.
func (s *memberSolver) Needs() sdk.Needs { return s.needs }

func newMemberSolver(strategy sdk.MemberStrategy) *memberSolver {
	s := &memberSolver{strategy: strategy}
	if n, ok := strategy.(interface{ Needs() sdk.Needs }); ok {
		s.needs = n.Needs()
	}
	s.needs.PerMember = true
	return s
}

// Close closes the strategy if it can be closed.
func (s *memberSolver) Close() error { return closeStrategy(s.strategy) }

func (s *memberSolver) Solve(ctx context.Context, request *pluginv1.SolveRequest) (*pluginv1.SolveResponse, error) {
	in, err := strategyInput(request)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(in.Members))
	for i, m := range in.Members {
		ids[i] = m.ClientID
	}
	ask := request.GetAsk()
	if len(ask) == 0 {
		ask = []int32{request.GetSelf()}
	}
	index := make(map[sdk.Queue]uint32, len(in.Queues))
	for i, q := range in.Queues {
		index[q] = uint32(i)
	}
	response := &pluginv1.SolveResponse{}
	for _, member := range ask {
		if member < 0 || int(member) >= len(ids) {
			return nil, fmt.Errorf("asked for member %d of %d", member, len(ids))
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("computing the share of %s: %w", ids[member], err)
		}
		share, err := authored(func() ([]sdk.Queue, error) {
			return s.strategy.Allocate(in.Group, ids[member], slices.Clone(in.Queues), slices.Clone(ids))
		})
		if err != nil {
			return nil, fmt.Errorf("computing the share of %s: %w", ids[member], err)
		}
		response.Claims = append(response.Claims, claimOf(member, share, index))
	}
	return response, nil
}

func closeStrategy(strategy any) error {
	if c, ok := strategy.(sdk.Closer); ok {
		return c.Close()
	}
	return nil
}

// needsOf is what the answer to Configure says of a configured strategy; nil for what is none.
func needsOf(solver Solver) *pluginv1.Needs {
	s, ok := solver.(interface{ Needs() sdk.Needs })
	if !ok {
		return nil
	}
	n := s.Needs()
	return &pluginv1.Needs{Partial: n.Partial, Attributes: n.Attributes, Previous: n.Previous, PerMember: n.PerMember}
}

func claimOf(member int32, share []sdk.Queue, index map[sdk.Queue]uint32) *pluginv1.Claim {
	claim := &pluginv1.Claim{Member: member}
	for _, q := range share {
		if i, known := index[q]; known {
			claim.Queue = append(claim.Queue, i)
		} else {
			claim.Foreign = append(claim.Foreign, &pluginv1.Queue{Topic: q.Topic, Broker: q.Broker, Id: q.ID})
		}
	}
	return claim
}

// strategyInput reads a question. It is refused where an author's code could only stumble over it.
func strategyInput(request *pluginv1.SolveRequest) (sdk.StrategyInput, error) {
	in := sdk.StrategyInput{
		Group: request.GetGroup(), Topic: request.GetTopic(), Self: int(request.GetSelf()),
		Queues: make([]sdk.Queue, len(request.GetQueues())), Members: make([]sdk.Member, len(request.GetMembers())),
		Previous: request.GetPrevious(),
	}
	for i, q := range request.GetQueues() {
		in.Queues[i] = sdk.Queue{Topic: q.GetTopic(), Broker: q.GetBroker(), ID: q.GetId()}
	}
	for i, m := range request.GetMembers() {
		in.Members[i] = sdk.Member{ClientID: m.GetClientId(), Attributes: m.GetAttributes()}
	}
	switch {
	case len(in.Queues) == 0 || len(in.Members) == 0:
		return in, fmt.Errorf("the question has %d queues and %d members: it needs at least one of each", len(in.Queues), len(in.Members))
	case in.Self < 0 || in.Self >= len(in.Members):
		return in, fmt.Errorf("the question's self is %d of %d members", in.Self, len(in.Members))
	case len(in.Previous) > 0 && len(in.Previous) != len(in.Queues):
		return in, fmt.Errorf("the question has %d previous owners for %d queues", len(in.Previous), len(in.Queues))
	}
	return in, nil
}

// authored runs an author's code. A panic is his error, with the place where it happened; the process lives on.
func authored[T any](f func() (T, error)) (result T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return f()
}
