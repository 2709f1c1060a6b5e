package broker

import "sync"

// maxLent is the largest buffer that is kept: what a pull or a batch of usual size takes.
const maxLent = 512 << 10

// lender lends the memory that encoded messages are in on their way between a connection and the store, 64 of them at a time:
// made anew for each request it would be most of what the garbage collector has to do.
type lender struct{ pool sync.Pool }

// lend returns an empty buffer with room for so many bytes, which is given back once.
func (l *lender) lend(size int) *[]byte {
	b, ok := l.pool.Get().(*[]byte)
	if !ok {
		b = new([]byte)
	}
	if cap(*b) < size {
		*b = make([]byte, 0, size)
	}
	*b = (*b)[:0]
	return b
}

func (l *lender) giveBack(b *[]byte) {
	if cap(*b) <= maxLent {
		l.pool.Put(b)
	}
}
