package remoting

import (
	"math/bits"
	"sync"
)

const (
	minBufferBits = 10 // 1 KiB
	maxBufferBits = 24 // 16 MiB, the longest frame
)

// Buffers is a pool of byte buffers in sizes of powers of two, shared by the connections of one client. The zero value is
// ready; it is safe for concurrent use.
type Buffers struct {
	classes [maxBufferBits - minBufferBits + 1]sync.Pool
}

type buffer struct {
	b     []byte
	class int
}

func bufferClass(size int) int {
	if size <= 1<<minBufferBits {
		return 0
	}
	return bits.Len(uint(size-1)) - minBufferBits
}

// get returns a buffer with len(b) == size; size is at most 1<<maxBufferBits.
func (p *Buffers) get(size int) *buffer {
	class := bufferClass(size)
	if v, ok := p.classes[class].Get().(*buffer); ok {
		v.b = v.b[:size]
		return v
	}
	return &buffer{b: make([]byte, size, 1<<(class+minBufferBits)), class: class}
}

func (p *Buffers) put(b *buffer) {
	if b != nil && cap(b.b) == 1<<(b.class+minBufferBits) {
		p.classes[b.class].Put(b)
	}
}
