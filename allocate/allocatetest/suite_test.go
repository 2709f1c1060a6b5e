package allocatetest_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/allocate/allocatetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type strategy func(allocate.Input) ([]int32, error)

func (strategy) Name() string                                  { return "test" }
func (strategy) Needs() allocate.Needs                         { return allocate.Needs{} }
func (f strategy) Allocate(in allocate.Input) ([]int32, error) { return f(in) }

func circle(in allocate.Input) []int32 {
	owner := make([]int32, len(in.Queues))
	for i := range owner {
		owner[i] = int32(i % len(in.Members))
	}
	return owner
}

// The suite finds each kind of broken strategy, and names the broken promise.
func TestSuiteFindsFaults(t *testing.T) {
	var calls atomic.Int32
	for _, c := range []struct {
		name, text string
		balanced   bool
		f          strategy
	}{
		{"sound", "", true, func(in allocate.Input) ([]int32, error) { return circle(in), nil }},
		{"refuses", "valid for every size: 1 queues, 1 members: no", false, func(allocate.Input) ([]int32, error) { return nil, errors.New("no") }},
		{"forgets", "has no owner", false, func(in allocate.Input) ([]int32, error) {
			owner := circle(in)
			owner[len(owner)-1] = allocate.Uncovered
			return owner, nil
		}},
		{"invents", "does not exist", false, func(in allocate.Input) ([]int32, error) {
			owner := circle(in)
			owner[0] = int32(len(in.Members))
			return owner, nil
		}},
		{"unbalanced", "is no balance", true, func(in allocate.Input) ([]int32, error) { return make([]int32, len(in.Queues)), nil }},
		{"remembers", "same answer again: ", false, func(in allocate.Input) ([]int32, error) {
			owner := circle(in)
			owner[0] = calls.Add(1) % int32(len(in.Members))
			return owner, nil
		}},
		{"prefers the asker", "same answer for every member: ", false, func(in allocate.Input) ([]int32, error) {
			owner := make([]int32, len(in.Queues))
			for i := range owner {
				owner[i] = int32(in.Self)
			}
			return owner, nil
		}},
		{"changes the question", "changed the question", false, func(in allocate.Input) ([]int32, error) {
			in.Queues[0].ID++
			return circle(in), nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := allocatetest.Verify(allocatetest.Suite{
				New: func() allocate.Strategy { return c.f }, Balanced: c.balanced, MaxQueues: 8, MaxMembers: 8,
			})
			switch {
			case c.text == "" && err != nil:
				t.Error(err)
			case c.text != "" && (err == nil || !strings.Contains(err.Error(), c.text)):
				t.Errorf("found %v, want %q", err, c.text)
			}
		})
	}
}

func TestParseQueues(t *testing.T) {
	for _, bad := range []string{"b", "b:x", "b:1-x"} {
		if q, err := allocatetest.ParseQueues("T", bad); err == nil {
			t.Errorf("%q reads as %v", bad, q)
		}
	}
}
