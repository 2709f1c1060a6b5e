package allocate_test

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/allocate/allocatetest"
)

// score is the strategy's hash of a queue and a member, written down once more in its plain form.
func score(q allocate.Queue, member string) uint64 {
	x := hashParts(q.Topic, q.Broker, strconv.Itoa(int(q.ID))) ^ hashParts(member)
	return finish(x)
}

func hashParts(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0xff})
	}
	return finish(h.Sum64())
}

func finish(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// unstable finds a queue and a member that score better together than the queue does where it is, while the member keeps a
// worse one: what the strategy promises that there is not. As no two scores are equal, only one answer has none.
func unstable(in allocate.Input, owner []int32) string {
	worst := make(map[int32]uint64)
	for i, o := range owner {
		s := score(in.Queues[i], in.Members[o].ClientID)
		if w, ok := worst[o]; !ok || s < w {
			worst[o] = s
		}
	}
	for i, q := range in.Queues {
		own := score(q, in.Members[owner[i]].ClientID)
		for j := range in.Members {
			w, reads := worst[int32(j)]
			if s := score(q, in.Members[j].ClientID); reads && s > own && s > w {
				return fmt.Sprintf("%s at %s, which is at %s", q, in.Members[j].ClientID, in.Members[owner[i]].ClientID)
			}
		}
	}
	return ""
}

func TestStickyIsTheStableMatching(t *testing.T) {
	s := builtin(t, allocate.NameSticky, "")
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.IntRange(1, 70).Draw(t, "members")
		ids := make([]string, members)
		for i := range ids {
			ids[i] = fmt.Sprintf("10.0.0.%d@%d", i, 100+i)
			if w := rapid.IntRange(0, 4).Draw(t, "weight"); i > 0 && w != 1 {
				ids[i] += fmt.Sprintf("@weight=%d", w)
			}
		}
		n := rapid.IntRange(1, 300).Draw(t, "queues")
		in, err := allocate.NewInput(allocate.View{Group: "G", Topic: "T", Self: ids[0], Members: ids, Queues: allocatetest.Queues("T", "b", n)})
		if err != nil {
			t.Fatal(err)
		}
		owner, err := s.Allocate(in)
		if err != nil {
			t.Fatal(err)
		}
		if err := allocate.Check(in, owner, s.Needs()); err != nil {
			t.Fatal(err)
		}
		if pair := unstable(in, owner); pair != "" {
			t.Fatalf("%d queues, %d members: better is %s", n, members, pair)
		}
	})
}

// Members of unlike versions must compute the same: a result that changes needs another BuiltinVersion.
func TestStickyResultsStay(t *testing.T) {
	s := builtin(t, allocate.NameSticky, "")
	for _, c := range []struct {
		queues, members int
		want            string
	}{{16, 5, "db2bf47d452221ec"}, {1_000, 37, "8f03022f39062e5a"}, {100_000, 1_000, "531199f70a942dbe"}} {
		in := allocatetest.Input(t, allocatetest.Queues("Orders", "broker-a", c.queues), allocatetest.Members(c.members))
		owner, err := s.Allocate(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := allocate.HashResult(owner); got != c.want || allocate.BuiltinVersion != "1" {
			t.Errorf("%d queues, %d members: result %s of version %s, want %s of version 1", c.queues, c.members, got, allocate.BuiltinVersion, c.want)
		}
		if low, high := allocatetest.Spread(in, owner); high-low > 1 {
			t.Errorf("%d queues, %d members: members own %d to %d queues", c.queues, c.members, low, high)
		}
	}
}

// Far fewer queues than members: each goes to a member of its own.
func TestStickyWithFewQueues(t *testing.T) {
	s := builtin(t, allocate.NameSticky, "")
	in := allocatetest.Input(t, allocatetest.Queues("T", "b", 3), allocatetest.Members(2_000))
	owner, err := s.Allocate(in)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Sort(owner); len(slices.Compact(owner)) != 3 || owner[0] < 0 {
		t.Errorf("owners %v of 3 queues and 2,000 members", owner)
	}
}
