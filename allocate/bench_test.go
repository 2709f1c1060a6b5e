package allocate_test

import (
	"fmt"
	"testing"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/allocate/allocatetest"
)

// BenchmarkAllocate computes the whole map of all members; RocketMQ's clients compute one member's share in the same
// setting (docs/benchmarks.md has their figures).
func BenchmarkAllocate(b *testing.B) {
	for _, size := range []struct{ queues, members int }{{16, 4}, {100_000, 1_000}} {
		in := allocatetest.Input(b, allocatetest.Queues("Orders", "broker-a", size.queues), allocatetest.Members(size.members))
		for _, name := range []string{allocate.NameAveragely, allocate.NameAveragelyByCircle, allocate.NameConsistentHash, allocate.NameSticky} {
			b.Run(fmt.Sprintf("%s/%dx%d", name, size.queues, size.members), func(b *testing.B) {
				s := builtin(b, name, "")
				b.ReportAllocs()
				for b.Loop() {
					if _, err := s.Allocate(in); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkGuard is a whole decision on a new question, in process: asked three times, checked, hashed.
func BenchmarkGuard(b *testing.B) {
	s := builtin(b, allocate.NameAveragely, "")
	v := allocate.View{Group: "G", Topic: "Orders", Queues: allocatetest.Queues("Orders", "broker-a", 100_000), Members: allocatetest.Members(1_000)}
	v.Self = v.Members[7]
	b.ReportAllocs()
	for b.Loop() {
		if d := newGuard(allocate.Needs{}).Decide(v, s.Allocate); d.Reason != nil {
			b.Fatal(d.Reason)
		}
	}
}
