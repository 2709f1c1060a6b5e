package queue

import (
	"net/netip"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// Span records one sampled attempt; the engine's observer fills it.
type Span interface {
	Settle(operation, destination string) (done func(error))
	End(v frame.Verdict, err error)
}

// Delivery is one message between its pull and its settling. Its byte slices alias the pull's buffer, which lives until
// every message of the pull is settled: a message can go out again, or be stored anew, without a second pull.
//
// The engine reuses deliveries: nobody keeps a pointer to one that is settled or dropped.
//
// There are tens of thousands of them, mostly out of the CPU's caches, so it is small: what only some messages need hangs
// on pointers or is decoded again. What every message needs when it is answered stands first, in one cache line.
type Delivery struct {
	Own         *Ownership
	chunk       *Chunk
	position    uint64 // in the window
	Offset      int64
	StoreMillis int64
	Attempt     int    // 1 + times it was counted before; the first is 1
	Topic       string // the original topic: RETRY_TOPIC of a retried message, else the topic pulled from

	Body       []byte // uncompressed
	Props      Properties
	BornMillis int64
	LogOffset  int64           // where its broker stores it
	storeHost  *netip.AddrPort // that broker; shared by messages, nil in tests
	raw        []byte          // the stored message; empty when msg is set
	msg        *wire.Message   // what Message returns for a message that has no stored form of its own
	Part       *Part           // nil unless it was stored inside of a batch
	Strand     uint32          // its strand at the dispatcher; 0 = none
	dropped    bool            // nobody works on it; it still holds the offset

	// The fields below belong to the dispatcher's goroutine while it has the message.

	// Direct takes the verdict of a message that an operator sends to the handler (309); such a message is never settled.
	Direct func(frame.Verdict)
	SentAt time.Time
	Span   Span   // nil when the attempt is not sampled
	trial  *Trial // made at the first lost lane
}

// Trial is what is known of a message that was in flight on lost lanes.
type Trial struct {
	Losses int // lanes lost with the message in flight
	Crash  Crash
	Failed time.Time // the first failure after which it is tried in place; zero = none. The settler's, while it has the message
}

// Crash is the memory of a message that was running when its process died (design.md 10).
type Crash struct {
	Count int    // processes that died with it running
	Solo  int    // of these: alone in the process
	Key   string // binary and config of the first solo crash that counts
	Acks  uint64 // records that Key had acked at that crash ...
	By    any    // ... as this dispatcher counted: another one's count says nothing
	Text  string // last words of the process
}

// Trial returns the memory of a message's lost lanes, to be changed.
func (d *Delivery) Trial() *Trial {
	if d.trial == nil {
		d.trial = &Trial{}
	}
	return d.trial
}

// Retried tells whether the message failed and is tried again in place.
func (d *Delivery) Retried() bool { return d.trial != nil && !d.trial.Failed.IsZero() }

// Crashed tells whether a process died with the message running.
func (d *Delivery) Crashed() bool { return d.trial != nil && d.trial.Crash.Count > 0 }

// Queue is where the message was pulled.
func (d *Delivery) Queue() sdk.Queue { return d.Own.Queue }

// Message decodes the message as it is stored. It is for what few messages need: spans, send-backs, dead letters.
func (d *Delivery) Message() *wire.Message {
	if d.msg != nil {
		return d.msg
	}
	m := new(wire.Message)
	if _, err := m.Decode(d.raw); err != nil {
		return &wire.Message{} // cannot be: the same bytes were decoded when they were pulled
	}
	return m
}

// StoreHost is the broker that stores the message.
func (d *Delivery) StoreHost() netip.AddrPort {
	if d.storeHost == nil {
		return netip.AddrPort{}
	}
	return *d.storeHost
}

// Size is what the message takes of a batch's byte limit.
func (d *Delivery) Size() int { return len(d.Body) + len(d.Props.Text) + d.Props.keysSize() + 64 }

// Chunk is what one pull brought. Its buffer is given back when its last message is settled.
type Chunk struct {
	Deliveries []Delivery

	admitted time.Time
	bytes    int64 // held until release: the buffer and what was unpacked
	live     int   // messages not settled yet
	release  func()
	pool     *chunkPool
}

// Bytes is the memory that the chunk holds.
func (c *Chunk) Bytes() int64 { return c.bytes }

// next makes room for one more delivery, which is zero: free cleared those that are used again.
func (c *Chunk) next() *Delivery {
	if n := len(c.Deliveries); n < cap(c.Deliveries) {
		c.Deliveries = c.Deliveries[:n+1]
	} else {
		c.Deliveries = append(c.Deliveries, Delivery{})
	}
	return &c.Deliveries[len(c.Deliveries)-1]
}

// free gives the buffer back; the chunk is reused afterwards.
func (c *Chunk) free() {
	release, pool := c.release, c.pool
	c.release = nil
	clear(c.Deliveries)
	c.Deliveries = c.Deliveries[:0]
	if release != nil {
		release()
	}
	if pool != nil {
		pool.put(c)
	}
}

// chunkPool keeps a few chunks of one queue for reuse. It is guarded by the lock of its worker's ownership.
type chunkPool struct{ free []*Chunk }

const pooledChunks = 32

func (p *chunkPool) get() *Chunk {
	n := len(p.free)
	if n == 0 {
		return &Chunk{pool: p}
	}
	c := p.free[n-1]
	p.free = p.free[:n-1]
	return c
}

func (p *chunkPool) put(c *Chunk) {
	c.bytes, c.live = 0, 0
	if len(p.free) < pooledChunks {
		p.free = append(p.free, c)
	}
}
