package allocate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// AttributeWeight is the attribute of a client id (…@weight=2) that says how many shares a member takes; 1 without it,
// 0 = none, at most MaxWeight.
const AttributeWeight = "weight"

// MaxWeight bounds AttributeWeight.
const MaxWeight = 1_000

// NewSticky makes sticky: bounded rendezvous hashing. It needs no shared state and no memory: what stays where it was
// follows from the hash alone.
//
// Promises: with equal weights members differ by at most one queue; when a member joins or leaves, few queues move
// besides those that have to (TestStickyMovement holds the figures). Who gets one queue more differs from topic to
// topic, so many small topics do not all land on the first member (consumer-semantics.md 2.12 D2.5).
//
// How: every (queue, member) has a score from a hash. Each member has a fixed number of seats: its exact share rounded
// down, and the seats left over go to the largest remainders, ties by hash. Queues ask for their best member first; a
// full member keeps the best scores and turns the worst away, which asks for its next best. The result does not depend
// on the order of asking (Gale and Shapley), so a change displaces only along chains of better scores. Integers only:
// the same on every architecture.
func NewSticky(NoConfig) (Strategy, error) {
	return &builtin{name: NameSticky, needs: Needs{Attributes: []string{AttributeWeight}}, allocate: sticky}, nil
}

func sticky(in Input) ([]int32, error) {
	weights, err := weightsOf(in.Members)
	if err != nil {
		return nil, err
	}
	m := newMatching(in, seatsOf(in, weights))
	for i := range in.Queues {
		m.place(i)
	}
	return m.owner, nil
}

func weightsOf(members []Member) ([]int, error) {
	weights := make([]int, len(members))
	total := 0
	for i, m := range members {
		weights[i] = 1
		if text, ok := m.Attributes[AttributeWeight]; ok {
			w, err := strconv.Atoi(text)
			if err != nil || w < 0 || w > MaxWeight {
				return nil, fmt.Errorf("strategy sticky: weight of member %s is %q: it has to be a whole number from 0 to %d", m.ClientID, text, MaxWeight)
			}
			weights[i] = w
		}
		total += weights[i]
	}
	if total == 0 {
		return nil, fmt.Errorf("strategy sticky: all %d members have weight 0: nobody would read", len(members))
	}
	return weights, nil
}

// seatsOf says how many queues each member gets: together exactly len(in.Queues).
func seatsOf(in Input, weights []int) []int {
	total := 0
	for _, w := range weights {
		total += w
	}
	type claim struct {
		member, remainder int
		tie               uint64
	}
	seats := make([]int, len(weights))
	claims := make([]claim, 0, len(weights))
	left := len(in.Queues)
	seed := hashOf(in.Group, in.Topic)
	for i, w := range weights {
		seats[i] = len(in.Queues) * w / total
		left -= seats[i]
		if w > 0 {
			claims = append(claims, claim{i, len(in.Queues) * w % total, mix(seed ^ hashOf(in.Members[i].ClientID))})
		}
	}
	slices.SortFunc(claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(b.remainder, a.remainder), cmp.Compare(b.tie, a.tie), cmp.Compare(a.member, b.member))
	})
	for _, c := range claims[:left] {
		seats[c.member]++
	}
	return seats
}

// bid is a queue's score at a member. Bids of one queue, and bids for one member, are totally ordered.
type bid struct {
	score         uint64
	queue, member int32
}

func (b bid) compare(o bid) int {
	if b.score != o.score {
		return cmp.Compare(b.score, o.score)
	}
	return cmp.Or(cmp.Compare(o.queue, b.queue), cmp.Compare(o.member, b.member))
}

// shortlist is how many of a queue's best members are looked up at a time: most queues never need a second look.
const shortlist = 12

type matching struct {
	owner   []int32
	queues  []uint64 // hashes
	members []uint64
	seats   []int
	held    []bids  // per member, worst first
	next    [][]bid // per queue: members to ask, best last
	asked   []bid   // per queue: the last of the list before
}

func newMatching(in Input, seats []int) *matching {
	m := &matching{
		owner: make([]int32, len(in.Queues)), queues: make([]uint64, len(in.Queues)), members: make([]uint64, len(in.Members)),
		seats: seats, held: make([]bids, len(in.Members)), next: make([][]bid, len(in.Queues)), asked: make([]bid, len(in.Queues)),
	}
	for i, q := range in.Queues {
		m.queues[i] = hashOf(q.Topic, q.Broker, strconv.Itoa(int(q.ID)))
	}
	for i, member := range in.Members {
		m.members[i] = hashOf(member.ClientID)
	}
	return m
}

// place finds a seat for a queue, and for whoever loses one by that.
func (m *matching) place(queue int) {
	for {
		b := m.bestLeft(queue)
		held := &m.held[b.member]
		m.owner[queue] = b.member
		held.push(b)
		if len(*held) <= m.seats[b.member] {
			return
		}
		queue = int(held.pop().queue)
	}
}

// bestLeft takes the best member that a queue has not asked yet. There always is one: seats and queues are equally many,
// so a queue that every member turned away would have found all seats taken by others.
func (m *matching) bestLeft(queue int) bid {
	list := m.next[queue]
	if len(list) == 0 {
		list = m.look(queue)
	}
	last := len(list) - 1
	m.next[queue] = list[:last]
	return list[last]
}

// look lists the next best members of a queue, best last.
func (m *matching) look(queue int) []bid {
	bound, bounded := m.asked[queue], m.next[queue] != nil
	best, own := make([]bid, 0, shortlist+1), m.queues[queue]
	for i, hash := range m.members {
		if m.seats[i] == 0 {
			continue
		}
		score := mix(own ^ hash)
		if len(best) == shortlist && score < best[0].score || bounded && score > bound.score {
			continue // almost every member ends here
		}
		b := bid{score: score, queue: asOwner(queue), member: asOwner(i)}
		if bounded && b.compare(bound) >= 0 || len(best) == shortlist && b.compare(best[0]) < 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, b, bid.compare)
		best = slices.Insert(best, at, b)
		if len(best) > shortlist {
			best = best[:copy(best, best[1:])]
		}
	}
	m.asked[queue] = best[0]
	return best
}

// bids are a heap with the worst bid first.
type bids []bid

func (h *bids) push(b bid) {
	*h = append(*h, b)
	heap := *h
	for i := len(heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if heap[i].compare(heap[parent]) >= 0 {
			return
		}
		heap[i], heap[parent] = heap[parent], heap[i]
		i = parent
	}
}

func (h *bids) pop() bid {
	heap := *h
	worst, last := heap[0], len(heap)-1
	heap[0] = heap[last]
	heap = heap[:last]
	*h = heap
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if heap[child].compare(heap[least]) < 0 {
				least = child
			}
		}
		if least == i {
			return worst
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}

// hashOf hashes texts with their borders: ("ab", "c") is not ("a", "bc"). It is FNV-1a, spread by mix.
func hashOf(parts ...string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, p := range parts {
		for i := range len(p) {
			h = (h ^ uint64(p[i])) * prime
		}
		h = (h ^ 0xff) * prime // no byte of UTF-8
	}
	return mix(h)
}

// mix spreads every bit of x over the whole result (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
