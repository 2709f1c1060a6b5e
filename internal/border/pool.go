package border

import (
	"math/bits"
	"sync"
)

// Sizes of pooled buffers: powers of two from 256 B to 4 MiB. gRPC's own pool has nothing between 32 KiB and 1 MiB, which
// is where batches are, and it clears every buffer, which costs more than a batch's checks do.
const (
	smallest = 8
	largest  = 22
)

// bufferPool is a mem.BufferPool. Its buffers hold what was in them before: everything that takes one fills it.
type bufferPool struct {
	tiers [largest - smallest + 1]sync.Pool
}

// Get returns a buffer of a length.
func (p *bufferPool) Get(length int) *[]byte {
	tier := max(0, bits.Len(uint(max(1, length)-1))-smallest)
	if tier >= len(p.tiers) {
		b := make([]byte, length)
		return &b
	}
	b, ok := p.tiers[tier].Get().(*[]byte)
	if !ok {
		fresh := make([]byte, 1<<(tier+smallest))
		b = &fresh
	}
	*b = (*b)[:length]
	return b
}

// Put takes a buffer back. One of another size than Get makes is left to the garbage collector.
func (p *bufferPool) Put(b *[]byte) {
	size := cap(*b)
	tier := bits.Len(uint(size)) - 1 - smallest
	if tier < 0 || tier >= len(p.tiers) || size != 1<<(tier+smallest) {
		return
	}
	*b = (*b)[:size]
	p.tiers[tier].Put(b)
}
