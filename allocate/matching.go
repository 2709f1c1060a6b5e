package allocate

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// bid is a queue's score at a member. All bids are totally ordered.
type bid struct {
	score         uint64
	queue, member int32
}

// compare orders the best bid first. Equal scores go by the place in the input.
func (b bid) compare(o bid) int {
	if b.score != o.score {
		return cmp.Compare(o.score, b.score)
	}
	return cmp.Or(cmp.Compare(b.queue, o.queue), cmp.Compare(b.member, o.member))
}

// matching gives every queue a seat, the best bid first. It looks at the bids in bands of falling scores, of which only the
// first is looked for among all queues and members: later ones only among those that are still free, which are few.
type matching struct {
	owner   []int32
	seats   []int    // free, by member
	queues  []side   // free
	members []side   // with free seats
	hashes  []uint64 // of members
	hits    []int32  // indexes into members
	bids    []bid
	sorted  []bid
	ends    []int32 // of the buckets of the sort
}

// side is a queue or a member with the folded hash of its name.
type side struct {
	hash  uint64
	index int32
}

func newMatching(in Input, seats []int) *matching {
	m := &matching{owner: make([]int32, len(in.Queues)), seats: seats, queues: make([]side, len(in.Queues)), members: make([]side, 0, len(in.Members))}
	var id [20]byte
	for i, q := range in.Queues {
		m.owner[i] = Uncovered
		h := addText(addText(fnvOffset, q.Topic), q.Broker)
		m.queues[i] = side{fold(mix(addText(h, strconv.AppendInt(id[:0], int64(q.ID), 10)))), asOwner(i)}
	}
	for i, member := range in.Members {
		if seats[i] > 0 {
			m.members = append(m.members, side{fold(hashOf(member.ClientID)), asOwner(i)})
		}
	}
	return m
}

// firstBand is how many bids of each queue the first band is to hold, on average. Fewer make later bands larger, more
// have to be sorted in vain.
const firstBand = 3

// run fills all seats. There are as many as queues, so the last band, of all bids that are left, leaves no queue free.
func (m *matching) run() {
	above := uint64(math.MaxUint64)
	for each := uint64(firstBand); len(m.queues) > 0; each *= 2 {
		least := lower(above, each, uint64(len(m.members)))
		m.collect(least, len(m.queues)*int(min(each, uint64(len(m.members))))) //nolint:gosec // few
		m.sort(least, above)
		for _, b := range m.sorted {
			if m.owner[b.queue] == Uncovered && m.seats[b.member] > 0 {
				m.owner[b.queue] = b.member
				m.seats[b.member]--
			}
		}
		m.queues = slices.DeleteFunc(m.queues, func(q side) bool { return m.owner[q.index] != Uncovered })
		m.members = slices.DeleteFunc(m.members, func(c side) bool { return m.seats[c.index] == 0 })
		above = least
	}
}

// lower returns where the next band begins, so that each of a queue's bids at so many members are expected in it. Its low
// bits are 0, as collect needs it.
func lower(least, each, members uint64) uint64 {
	if each >= members {
		return 0
	}
	return (least - least/members*each) &^ lowBits
}

// lowBits are the bits of a score that the last step of mix changes.
const lowBits = 1<<33 - 1

// collect finds the bids of the free from least on. None of them was in an earlier band: of its pairs one side is taken.
func (m *matching) collect(least uint64, expected int) {
	m.bids = slices.Grow(m.bids[:0], expected*17/16)
	m.hashes = m.hashes[:0]
	for _, c := range m.members {
		m.hashes = append(m.hashes, c.hash)
	}
	for _, q := range m.queues {
		m.hits = m.scan(m.hits[:0], q.hash, least)
		for _, i := range m.hits {
			c := m.members[i]
			x := scramble(q.hash ^ c.hash)
			m.bids = append(m.bids, bid{score: x ^ x>>31, queue: q.index, member: c.index})
		}
	}
}

// scan lists the members at which a queue has a score from least on. It does so once for each pair of 100,000 queues and
// 1,000 members, so it is mix without its first step, which fold has done for both sides, and without its last one, which
// changes no bit that counts; and it does four at a time, which do not wait for one another.
func (m *matching) scan(hits []int32, own, least uint64) []int32 {
	hashes, i := m.hashes, int32(0)
	for ; len(hashes) >= 4; hashes, i = hashes[4:], i+4 {
		a, b, c, d := scramble(own^hashes[0]), scramble(own^hashes[1]), scramble(own^hashes[2]), scramble(own^hashes[3])
		if max(a, b, c, d) < least {
			continue
		}
		for k, x := range [4]uint64{a, b, c, d} {
			if x >= least {
				hits = append(hits, i+int32(k))
			}
		}
	}
	for k, h := range hashes {
		if scramble(own^h) >= least {
			hits = append(hits, i+int32(k))
		}
	}
	return hits
}

// sort sorts the bids of a band, the best first. Scores are spread evenly, so of as many buckets as there are bids, each of
// them a range of scores, most hold one or two.
func (m *matching) sort(least, above uint64) {
	shift := max(0, bits.Len64(above-least)-bits.Len(uint(len(m.bids))))
	bucket := func(b bid) uint64 { return (above - b.score) >> shift }
	buckets := int((above-least)>>shift) + 1
	m.ends = slices.Grow(m.ends[:0], buckets)[:buckets]
	clear(m.ends)
	for _, b := range m.bids {
		m.ends[bucket(b)]++
	}
	end := int32(0)
	for i, n := range m.ends {
		m.ends[i] = end // where it begins, until its bids are in
		end += n
	}
	m.sorted = slices.Grow(m.sorted[:0], len(m.bids))[:len(m.bids)]
	for _, b := range m.bids {
		at := &m.ends[bucket(b)]
		m.sorted[*at] = b
		*at++
	}
	begin := int32(0)
	for _, end := range m.ends {
		if end-begin > 1 {
			slices.SortFunc(m.sorted[begin:end], bid.compare)
		}
		begin = end
	}
}

// The constants of the hash: FNV-1a, and the finalizer of splitmix64.
const (
	fnvOffset = uint64(14695981039346656037)
	fnvPrime  = 1099511628211
	mixFirst  = 0xbf58476d1ce4e5b9
	mixSecond = 0x94d049bb133111eb
)

// hashOf hashes texts with their borders: ("ab", "c") is not ("a", "bc").
func hashOf(parts ...string) uint64 {
	h := fnvOffset
	for _, p := range parts {
		h = addText(h, p)
	}
	return mix(h)
}

func addText[T string | []byte](h uint64, text T) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * fnvPrime
	}
	return (h ^ 0xff) * fnvPrime // no byte of UTF-8
}

// mix spreads every bit of x over the whole result.
func mix(x uint64) uint64 {
	x = scramble(fold(x))
	return x ^ x>>31
}

// fold is the first step of mix: fold(a^b) is fold(a)^fold(b). scramble is the middle one.
func fold(x uint64) uint64 { return x ^ x>>30 }

func scramble(x uint64) uint64 {
	x *= mixFirst
	return (x ^ x>>27) * mixSecond
}
