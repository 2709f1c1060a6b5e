package pluginhost

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// Bounds of a question to a strategy and of its answer.
const (
	// SolveDeadline is how long a strategy may think when StrategyConfig leaves it open.
	SolveDeadline = 2 * time.Second
	// maxQuestion bounds both ways: 100,000 queues and 1,000 members are about 5 MiB.
	maxQuestion = 32 << 20
)

// SolverProcess is the running process that answers for a configured strategy.
type SolverProcess struct {
	Client     pluginv1.PluginClient
	Plugin     string // name of the entry under plugins:
	Version    string
	Checksum   string // sha256 of the binary that runs
	Generation uint64
	Needs      *pluginv1.Needs   // what it answered to Configure
	Exited     <-chan struct{}   // closed when the process is gone
	Explain    func(error) error // turns the transport's word into the process's last one; nil = as it is
}

// SolverHost finds the process of a strategy. Acquire waits until one is ready and configured, or ctx ends; its error
// then says why there is none.
type SolverHost interface {
	Acquire(ctx context.Context) (SolverProcess, error)
}

// StrategyConfig names a configured strategy of a plugin.
type StrategyConfig struct {
	Instance string        // as it was configured: of the stream's allocation
	Name     string        // for people and digests: plugin/component
	Config   []byte        // JSON, as delivered
	Deadline time.Duration // per question; 0 = SolveDeadline
}

// Strategy asks a plugin's process (the Solve call). It fits the engine's seam for strategies. Answers are not checked
// here, but for the claims of per-member strategies, which only the check turns into an answer. Safe for concurrent use.
type Strategy struct {
	config   StrategyConfig
	host     SolverHost
	identity allocate.Identity
	needs    allocate.Needs
}

// OpenStrategy waits for the process of a strategy, to learn its needs. A later generation must need the same: another
// binary or config is another Strategy.
func OpenStrategy(ctx context.Context, config StrategyConfig, host SolverHost) (*Strategy, error) {
	if config.Deadline <= 0 {
		config.Deadline = SolveDeadline
	}
	process, err := host.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("opening strategy %s: %w", config.Name, err)
	}
	n := process.Needs
	return &Strategy{
		config: config, host: host,
		identity: allocate.Identity{
			Strategy: config.Name, Version: process.Version + "+" + process.Checksum, Config: allocate.HashConfig(config.Config),
		},
		needs: allocate.Needs{
			Partial: n.GetPartial(), Attributes: n.GetAttributes(), Previous: n.GetPrevious(), PerMember: n.GetPerMember(),
		},
	}, nil
}

// Name returns plugin/component.
func (s *Strategy) Name() string { return s.config.Name }

// Needs returns what the configured strategy reads and promises.
func (s *Strategy) Needs() allocate.Needs { return s.needs }

// Identity returns what two members must share to compute the same.
func (s *Strategy) Identity() allocate.Identity { return s.identity }

// Close gives nothing back: the process belongs to the host.
func (s *Strategy) Close() error { return nil }

// Solve puts one question to the process, with the configured deadline over waiting for the process and its answer. The
// error is an *allocate.AskError (timeout, crash, refusal), for the claims of a per-member strategy an
// *allocate.InvalidError, or wraps ctx's when the caller gave up.
func (s *Strategy) Solve(ctx context.Context, in allocate.Input) ([]int32, error) {
	bounded, cancel := context.WithTimeoutCause(ctx, s.config.Deadline, Waited(s.config.Deadline))
	defer cancel()
	process, err := s.host.Acquire(bounded)
	if err != nil {
		if ctx.Err() != nil {
			return nil, s.givenUp(ctx, "no process is ready", err)
		}
		return nil, &allocate.AskError{Kind: allocate.RuleCrash, Err: fmt.Errorf("no process of %s is ready: %w", s.config.Name, err)}
	}
	request, asked := s.question(in)
	if size := proto.Size(request); size > maxQuestion {
		return nil, &allocate.AskError{Kind: allocate.RuleRefused, Err: fmt.Errorf(
			"%d queues and %d members are a question of %d bytes, the limit is %d: use a built-in strategy", len(in.Queues), len(in.Members), size, maxQuestion)}
	}
	response, err := process.Client.Solve(bounded, request, grpc.MaxCallRecvMsgSize(maxQuestion), grpc.MaxCallSendMsgSize(maxQuestion))
	if err != nil {
		return nil, s.classify(ctx, process, err)
	}
	if text := response.GetError(); text != "" {
		return nil, &allocate.AskError{Kind: allocate.RuleRefused, Err: fmt.Errorf("%s: %s", s.config.Name, text)}
	}
	if s.needs.PerMember && len(response.GetOwner()) == 0 {
		return s.judgeClaims(in, asked, response.GetClaims())
	}
	return response.GetOwner(), nil
}

// question writes in as a request, and for a per-member strategy whom to compute.
func (s *Strategy) question(in allocate.Input) (*pluginv1.SolveRequest, []int) {
	request := &pluginv1.SolveRequest{
		Instance: s.config.Instance, Group: in.Group, Topic: in.Topic, Self: int32(in.Self), Previous: in.Previous,
		Queues: make([]*pluginv1.Queue, len(in.Queues)), Members: make([]*pluginv1.Member, len(in.Members)),
	}
	for i, q := range in.Queues {
		request.Queues[i] = &pluginv1.Queue{Topic: q.Topic, Broker: q.Broker, Id: q.ID}
	}
	for i, m := range in.Members {
		request.Members[i] = &pluginv1.Member{ClientId: m.ClientID, Attributes: m.Attributes}
	}
	if !s.needs.PerMember {
		return request, nil
	}
	asked := allocate.Asked(in)
	// In an order that starts after self: a strategy that remembers calls shows itself.
	start, _ := slices.BinarySearch(asked, in.Self)
	for n := range asked {
		request.Ask = append(request.Ask, int32(asked[(start+1+n)%len(asked)]))
	}
	return request, asked
}

// judgeClaims makes one answer of what each asked member claims.
func (s *Strategy) judgeClaims(in allocate.Input, asked []int, claims []*pluginv1.Claim) ([]int32, error) {
	shares := make([][]allocate.Queue, len(asked))
	answered := make([]bool, len(asked))
	for _, claim := range claims {
		k, wanted := slices.BinarySearch(asked, int(claim.GetMember()))
		if !wanted || answered[k] {
			return nil, s.invalid(fmt.Sprintf("a claim for member %d, which was not asked for or has one already", claim.GetMember()))
		}
		answered[k] = true
		for _, i := range claim.GetQueue() {
			if int(i) >= len(in.Queues) {
				return nil, s.invalid(fmt.Sprintf("a claim on queue %d of %d", i, len(in.Queues)))
			}
			shares[k] = append(shares[k], in.Queues[i])
		}
		for _, q := range claim.GetForeign() {
			shares[k] = append(shares[k], allocate.Queue{Topic: q.GetTopic(), Broker: q.GetBroker(), ID: q.GetId()})
		}
	}
	if k := slices.Index(answered, false); k >= 0 {
		return nil, s.invalid("no claim for member " + in.Members[asked[k]].ClientID)
	}
	return allocate.CheckShares(in, asked, shares, s.needs)
}

func (s *Strategy) invalid(detail string) error {
	return &allocate.InvalidError{Strategy: s.config.Name, Rule: allocate.RuleLength, Detail: detail}
}

// givenUp is a question whose caller did not wait for the answer. It is ctx's own error as well: that says nothing against the
// strategy (allocate.RuleOf).
func (s *Strategy) givenUp(ctx context.Context, what string, why error) error {
	err := unmet(what, why, context.Cause(ctx))
	return fmt.Errorf("asking strategy %s: %w", s.config.Name, &unmetError{err.Error(), err, ctx.Err()})
}

// classify tells a strategy that is slow from one that is gone and from one that says no.
func (s *Strategy) classify(ctx context.Context, process SolverProcess, err error) error {
	if ctx.Err() != nil {
		return s.givenUp(ctx, "no answer", nil)
	}
	kind := allocate.RuleRefused
	switch status.Code(err) {
	case codes.DeadlineExceeded:
		kind = allocate.RuleTimeout
	case codes.Unavailable, codes.Canceled, codes.Aborted:
		kind = allocate.RuleCrash
	case codes.OK, codes.Unknown, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied,
		codes.ResourceExhausted, codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented, codes.Internal,
		codes.DataLoss, codes.Unauthenticated:
	}
	switch {
	case kind == allocate.RuleTimeout:
		err = unmet("no answer", nil, Waited(s.config.Deadline))
	case process.Explain != nil:
		err = process.Explain(err)
	}
	select {
	case <-process.Exited:
		kind = allocate.RuleCrash
	default:
	}
	return &allocate.AskError{Kind: kind, Err: fmt.Errorf("asking %s (plugin %s %s, generation %d): %w",
		s.config.Name, process.Plugin, process.Version, process.Generation, err)}
}
