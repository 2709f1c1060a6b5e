package broker

import (
	"slices"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/broker/damage"
	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Action is what a fault does with a request it hits. The functions of this file make them.
type Action interface {
	act(r *remote.Request, next func(*remote.Request))
}

type actionFunc func(r *remote.Request, next func(*remote.Request))

func (f actionFunc) act(r *remote.Request, next func(*remote.Request)) { f(r, next) }

// Refuse answers with an error; the request is not carried out.
func Refuse(code wire.ResponseCode, remark string) Action {
	return actionFunc(func(r *remote.Request, _ func(*remote.Request)) { r.Reply(headed(code, remark)) })
}

// DropRequest loses the request: it is not carried out and not answered.
func DropRequest() Action {
	return actionFunc(func(*remote.Request, func(*remote.Request)) {})
}

// DropAnswer carries the request out and loses the answer.
func DropAnswer() Action {
	return actionFunc(func(r *remote.Request, next func(*remote.Request)) {
		r.Tamper = func([]byte) {}
		next(r)
	})
}

// Delay carries the request out after d. Later requests of the connection overtake it.
func Delay(d time.Duration) Action {
	return actionFunc(func(r *remote.Request, next func(*remote.Request)) {
		r.Keep()
		time.AfterFunc(d, func() {
			select {
			case <-r.Conn.Done(): // A member must not join over a connection whose end was already noticed.
			default:
				next(r)
			}
		})
	})
}

// Cut closes the connection; the request is not carried out.
func Cut() Action {
	return actionFunc(func(r *remote.Request, _ func(*remote.Request)) { r.Conn.Close() })
}

// HalfClose ends the direction to the client: it reads EOF, and may go on sending without ever being answered. The request
// is not carried out.
func HalfClose() Action {
	return actionFunc(func(r *remote.Request, _ func(*remote.Request)) { r.Conn.CloseWrite() })
}

// Corrupt carries the request out and breaks the answer.
func Corrupt(k damage.Kind) Action {
	return actionFunc(func(r *remote.Request, next func(*remote.Request)) {
		r.Tamper = func(frame []byte) { r.Conn.WriteRaw(damage.Apply(k, frame)) }
		next(r)
	})
}

// Reorder carries requests out and holds their answers back until n are there, then sends them in reverse. Lifting the
// fault sends what is held.
func Reorder(n int) Action { return &reorder{size: n} }

type reorder struct {
	size int
	mu   sync.Mutex
	held []heldFrame
}

type heldFrame struct {
	conn  *remote.Conn
	frame []byte
}

func (o *reorder) act(r *remote.Request, next func(*remote.Request)) {
	r.Tamper = func(frame []byte) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.held = append(o.held, heldFrame{r.Conn, frame})
		if len(o.held) >= o.size {
			o.releaseLocked()
		}
	}
	next(r)
}

func (o *reorder) lift() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.releaseLocked()
}

func (o *reorder) releaseLocked() {
	for _, h := range slices.Backward(o.held) {
		h.conn.WriteRaw(h.frame)
	}
	o.held = nil
}
