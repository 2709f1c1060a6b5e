package allocate

import (
	"fmt"
	"slices"

	"github.com/streamd/streamd/sdk"
)

// MemberFunc computes the share of one member: which of queues belong to self. queues and members are sorted, unique
// and its own to keep; self is one of members.
type MemberFunc func(group, self string, queues []Queue, members []string) ([]Queue, error)

// PerMember makes a Strategy of a function that knows one member's share. Its Allocate asks for every member and judges
// the shares as one map (CheckShares); above MaxWholeMap pairs of member and queue it asks for Self and a sample and
// answers NotComputed for the rest. Members are asked in an order that starts after Self, so that a function that
// remembers calls shows itself.
func PerMember(name string, needs Needs, f MemberFunc) Strategy {
	needs.PerMember = true
	return &perMember{name: name, needs: needs, f: f}
}

// FromMember makes a Strategy of an author's smallest contract, as PerMember does. The needs are those that s declares
// by a method Needs() Needs, if it has one.
func FromMember(s sdk.MemberStrategy) Strategy {
	var needs Needs
	if n, ok := s.(interface{ Needs() sdk.Needs }); ok {
		needs = n.Needs()
	}
	return PerMember(s.Name(), needs, s.Allocate)
}

type perMember struct {
	name  string
	needs Needs
	f     MemberFunc
}

func (s *perMember) Name() string { return s.name }
func (s *perMember) Needs() Needs { return s.needs }

func (s *perMember) Allocate(in Input) ([]int32, error) {
	ids := make([]string, len(in.Members))
	for i, m := range in.Members {
		ids[i] = m.ClientID
	}
	asked := Asked(in)
	shares := make([][]Queue, len(asked))
	start, _ := slices.BinarySearch(asked, in.Self)
	for n := range asked {
		k := (start + 1 + n) % len(asked)
		self := ids[asked[k]]
		share, err := s.f(in.Group, self, slices.Clone(in.Queues), slices.Clone(ids))
		if err != nil {
			return nil, fmt.Errorf("computing the share of %s: %w", self, err)
		}
		shares[k] = share
	}
	return CheckShares(in, asked, shares, s.needs)
}
