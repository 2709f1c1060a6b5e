package remote

import (
	"sync"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// call is one request of the server that waits for the client's answer.
type call struct {
	once  sync.Once
	timer *time.Timer
	done  func(*wire.Command, error)
}

func (k *call) end(cmd *wire.Command, err error) {
	k.once.Do(func() {
		k.timer.Stop()
		k.done(cmd, err)
	})
}

// Call sends a request to the client. done runs exactly once: with the answer (valid until done returns), with
// ErrCallTimeout, or with ErrConnClosed. It must not block.
func (c *Conn) Call(cmd *wire.Command, timeout time.Duration, done func(*wire.Command, error)) {
	opaque := c.server.opaque.Add(1)
	cmd.Opaque = opaque
	k := &call{done: done}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		done(nil, ErrConnClosed)
		return
	}
	if c.calls == nil {
		c.calls = make(map[int32]*call)
	}
	k.timer = time.AfterFunc(timeout, func() {
		c.mu.Lock()
		delete(c.calls, opaque)
		c.mu.Unlock()
		k.end(nil, ErrCallTimeout)
	})
	c.calls[opaque] = k
	c.mu.Unlock()
	c.sendRequest(cmd)
}
