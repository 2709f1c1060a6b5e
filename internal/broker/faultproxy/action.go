package faultproxy

import (
	"io"
	"net"
	"time"

	"github.com/streamd/streamd/internal/broker/damage"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Action is what a rule does with a frame it hits. An error ends the direction: io.EOF passes the end on, anything else
// cuts the connection.
type Action func(*passage) error

// passage is one frame on its way.
type passage struct {
	link     *link
	frame    Frame
	from, to *end
}

// Garble forwards the frame damaged.
func Garble(k damage.Kind) Action {
	return func(p *passage) error { return p.to.write(damage.Apply(k, p.frame.Raw)) }
}

// Drop loses the frame.
func Drop() Action { return func(*passage) error { return nil } }

// Delay holds the frame, and with it all later ones of its direction on this connection, for d.
func Delay(d time.Duration) Action {
	return func(p *passage) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return p.to.write(p.frame.Raw)
		case <-p.link.done:
			return net.ErrClosed
		}
	}
}

// Cut closes the connection at this frame, which is lost.
func Cut() Action { return func(*passage) error { return errEnded } }

// CutMidFrame forwards half of the frame and closes the connection.
func CutMidFrame() Action {
	return func(p *passage) error {
		if err := p.to.write(p.frame.Raw[:len(p.frame.Raw)/2]); err != nil {
			return err
		}
		return errEnded
	}
}

// HalfClose loses the frame and ends its direction; the other one goes on.
func HalfClose() Action { return func(*passage) error { return io.EOF } }

// Stall loses the frame and all later ones of its direction on this connection, which stays open until the sender ends it.
func Stall() Action {
	return func(p *passage) error {
		if _, err := io.Copy(io.Discard, p.from.conn); err != nil {
			return err
		}
		return io.EOF
	}
}

// Refuse answers a request in the receiver's stead; it is not forwarded. A oneway request is lost, an answer passes.
func Refuse(code wire.ResponseCode, remark string) Action {
	return func(p *passage) error {
		request := &p.frame.Command
		if !p.frame.Readable || request.IsResponse() {
			return p.to.write(p.frame.Raw)
		}
		if request.IsOneway() {
			return nil
		}
		answer := wire.NewResponse(request, code, remark)
		answer.Language, answer.Version = wire.LanguageJava, int32(wire.Version5_3_3)
		frame, err := wire.AppendFrame(nil, answer)
		if err != nil {
			return err
		}
		return p.from.write(frame)
	}
}
