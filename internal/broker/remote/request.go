package remote

import (
	"sync/atomic"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Request is one request of a client.
type Request struct {
	Conn    *Conn
	Command *wire.Command
	// Tamper takes an encoded answer instead of the connection when it is set. It owns the frame.
	Tamper   func(frame []byte)
	answered atomic.Bool
}

// Answer is the answer to a request.
type Answer struct {
	Code   wire.ResponseCode
	Remark string
	// EmptyRemark writes a remark that is there and empty, as 5.3.3 does for some codes.
	EmptyRemark bool
	// Ext: nil = the answer has no header class, so no member; empty = one without values (vectors/README.md 5.1).
	Ext  wire.Fields
	Body []byte
	// Parts follow Body. They are copied into the connection's buffer and not kept.
	Parts [][]byte
	// Release, when set, is called once the answer was copied, or is not written at all: Parts may be used anew.
	Release func()
}

// Reply gives the answer, from any goroutine. Its header is JSON, also to a binary request, as all 5.x brokers answer
// (remoting-protocol.md 1.4). Only the first one counts, and none at all for a oneway request.
func (r *Request) Reply(a *Answer) {
	if a.Release != nil {
		defer a.Release()
	}
	if r.answered.Swap(true) || r.Command.IsOneway() {
		return
	}
	cmd := &wire.Command{
		Code:        int32(a.Code),
		Language:    wire.LanguageJava,
		Version:     int32(r.Conn.server.options.Version),
		Opaque:      r.Command.Opaque,
		Flag:        wire.FlagResponse,
		Remark:      a.Remark,
		EmptyRemark: a.EmptyRemark,
		Ext:         a.Ext,
		Body:        a.Body,
	}
	if r.Tamper == nil {
		r.Conn.enqueue(func(out []byte) ([]byte, error) { return appendFrame(out, cmd, a.Parts) })
		return
	}
	frame, err := appendFrame(nil, cmd, a.Parts)
	if err != nil {
		r.Conn.server.options.Logger.Error("encoding an answer", "peer", r.Conn.remote.String(), "error", err.Error())
		r.Conn.Close()
		return
	}
	r.Tamper(frame)
}

// Keep makes the request outlive the handler: its body no longer aliases the connection's buffer.
func (r *Request) Keep() {
	r.Command.Body = append([]byte(nil), r.Command.Body...)
}
