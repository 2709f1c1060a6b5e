package remoting

import (
	"errors"
	"fmt"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Why a connection ended, as CallError wraps it.
var (
	ErrClosed    = errors.New("connection closed by this side")
	ErrSilent    = errors.New("peer accepts requests but answers nothing")
	ErrIdle      = errors.New("connection closed after idling")
	ErrDraining  = errors.New("peer is going away")
	ErrBadFrame  = errors.New("peer broke the protocol")
	ErrPeerClose = errors.New("peer closed the connection")
)

// CallError is a request that got no answer.
type CallError struct {
	Addr string
	Code wire.RequestCode
	// Sent tells that bytes of the request may have reached the peer: its effect is unknown. When it is false the peer
	// has not seen the request.
	Sent bool
	Err  error // a context's error, one of the Err values of this package, or the network's
}

func (e *CallError) Error() string {
	if e.Sent {
		return fmt.Sprintf("waiting for the answer of %s to %s: %v", e.Addr, e.Code, e.Err)
	}
	return fmt.Sprintf("sending %s to %s: %v", e.Code, e.Addr, e.Err)
}

// Unwrap gives the cause.
func (e *CallError) Unwrap() error { return e.Err }
