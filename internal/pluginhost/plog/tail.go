package plog

import (
	"bytes"
	"strings"
	"sync"
)

// Tail keeps the last bytes written to it. Safe for concurrent use.
type Tail struct {
	mu   sync.Mutex
	size int
	buf  []byte
}

// TailSize is how much of a process's last words is kept, in bytes.
const TailSize = 64 << 10

// NewTail keeps the last size bytes.
func NewTail(size int) *Tail { return &Tail{size: size} }

// add appends a line, dropping from the front. The buffer grows to at most twice the size before it is compacted.
func (t *Tail) add(line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(append(t.buf, line...), '\n')
	if len(t.buf) > 2*t.size {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-t.size:]...)
	}
}

// Last returns up to n last lines, without a trailing line break, within the size.
func (t *Tail) Last(n int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := bytes.TrimRight(t.buf[max(0, len(t.buf)-t.size):], "\n")
	start := len(kept)
	for range n {
		i := bytes.LastIndexByte(kept[:start], '\n')
		if i < 0 {
			start = 0
			break
		}
		start = i
	}
	return strings.ToValidUTF8(strings.TrimPrefix(string(kept[start:]), "\n"), "\uFFFD")
}

// String returns all that is kept.
func (t *Tail) String() string { return t.Last(TailSize) }

// Account returns what a Go process said about its end: from its last panic, fatal error or signal dump on; the last n lines
// when there is none.
func (t *Tail) Account(n int) string {
	all := t.String()
	at := -1
	for _, mark := range []string{"panic: ", "fatal error: ", "SIGQUIT: ", "runtime: out of memory"} {
		if strings.HasPrefix(all, mark) {
			at = max(at, 0)
		}
		if i := strings.LastIndex(all, "\n"+mark); i >= 0 {
			at = max(at, i+1)
		}
	}
	if at < 0 {
		return t.Last(n)
	}
	lines := strings.SplitN(all[at:], "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "\n")
}
