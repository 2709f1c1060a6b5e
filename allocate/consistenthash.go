package allocate

import (
	"cmp"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
)

// ConsistentHashConfig sets the ring.
type ConsistentHashConfig struct {
	// VirtualNodes is the number of points each member has on the ring; 10, Java's default, when left out. With 0 nobody
	// gets anything, as in Java.
	VirtualNodes *int `json:"virtual_nodes,omitempty" min:"0" doc:"points of each member on the ring; left out: 10, as Java"`
}

// NewConsistentHash makes Java's CONSISTENT_HASH with Java's ring: the first four bytes of MD5, big-endian
// (AllocateMessageQueueConsistentHash, ConsistentHashRouter; consumer-semantics.md 2.9). The Go client's ring is another.
func NewConsistentHash(c ConsistentHashConfig) (Strategy, error) {
	points := 10
	if c.VirtualNodes != nil {
		points = *c.VirtualNodes
	}
	if points < 0 {
		return nil, errors.New("strategy consistent_hash: virtual_nodes must be 0 or more; leave it out for Java's 10")
	}
	return &builtin{name: NameConsistentHash, needs: Needs{Partial: points == 0}, allocate: func(in Input) ([]int32, error) {
		return consistentHash(in, points), nil
	}}, nil
}

type point struct {
	hash   uint32
	member int32
}

func consistentHash(in Input, pointsEach int) []int32 {
	owner := make([]int32, len(in.Queues))
	ring := newRing(in.Members, pointsEach)
	var text []byte
	for i, q := range in.Queues {
		if len(ring) == 0 {
			owner[i] = Uncovered
			continue
		}
		text = append(text[:0], "MessageQueue [topic="...)
		text = append(text, q.Topic...)
		text = append(text, ", brokerName="...)
		text = append(text, q.Broker...)
		text = append(text, ", queueId="...)
		text = strconv.AppendInt(text, int64(q.ID), 10)
		text = append(text, ']')
		at, _ := slices.BinarySearchFunc(ring, hashMD5(text), func(p point, h uint32) int { return cmp.Compare(p.hash, h) })
		owner[i] = ring[at%len(ring)].member
	}
	return owner
}

// newRing returns the points in order. Where points collide the member that is later in the list has it, as a put into
// Java's TreeMap replaces.
func newRing(members []Member, pointsEach int) []point {
	ring := make([]point, 0, len(members)*pointsEach)
	var text []byte
	for i, m := range members {
		for n := range pointsEach {
			text = append(append(text[:0], m.ClientID...), '-')
			text = strconv.AppendInt(text, int64(n), 10)
			ring = append(ring, point{hash: hashMD5(text), member: asOwner(i)})
		}
	}
	slices.SortFunc(ring, func(a, b point) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(b.member, a.member)) })
	return slices.CompactFunc(ring, func(a, b point) bool { return a.hash == b.hash })
}

func hashMD5(text []byte) uint32 {
	sum := md5.Sum(text)
	return binary.BigEndian.Uint32(sum[:4])
}
