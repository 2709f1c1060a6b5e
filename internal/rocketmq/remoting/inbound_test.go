package remoting

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func notify(op wire.RequestCode, opaque, flag int32) *wire.Command {
	cmd := wire.NewRequest(&wire.PlainRequest{Op: op}, []byte("body"))
	cmd.Opaque, cmd.Flag = opaque, flag
	return cmd
}

func TestRequestsOfThePeerAreAnswered(t *testing.T) {
	handle := func(_ context.Context, req *wire.Command) *wire.Command {
		switch req.RequestCode() {
		case wire.ReqGetConsumerRunningInfo:
			resp := wire.NewResponse(req, wire.RespSuccess, "")
			resp.Body = req.Body
			return resp
		case wire.ReqConsumeDirectly:
			panic("author's code")
		default:
			return nil
		}
	}
	_, peer := connect(t, Config{Handle: handle})
	tests := []struct {
		op   wire.RequestCode
		want wire.ResponseCode
		body string
	}{
		{wire.ReqGetConsumerRunningInfo, wire.RespSuccess, "body"},
		{wire.ReqConsumeDirectly, wire.RespSystemError, ""},
		{9999, wire.RespNotSupported, ""},
	}
	for i, tt := range tests {
		req := notify(tt.op, int32(100+i), 0)
		req.Encoding = wire.Encoding(i % 2)
		peer.send(req)
		got := peer.next()
		if got.ResponseCode() != tt.want || got.Opaque != req.Opaque || !got.IsResponse() || string(got.Body) != tt.body || got.Encoding != req.Encoding {
			t.Errorf("%s was answered %+v", tt.op, got)
		}
	}
}

func TestOnewayRequestsAreNotAnswered(t *testing.T) {
	seen := make(chan struct{}, 1)
	_, peer := connect(t, Config{Handle: func(_ context.Context, req *wire.Command) *wire.Command {
		if req.IsOneway() {
			seen <- struct{}{}
		}
		return wire.NewResponse(req, wire.RespSuccess, "")
	}})
	peer.send(notify(wire.ReqNotifyConsumerIDsChanged, 1, wire.FlagOneway))
	<-seen
	peer.send(notify(wire.ReqGetConsumerRunningInfo, 2, 0))
	if got := peer.next(); got.Opaque != 2 {
		t.Errorf("the oneway was answered: %+v", got)
	}
}

func TestHandlersAreBoundedAndDoNotBlockAnswers(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		c, peer := connect(t, Config{MaxHandlers: 2, Handle: func(ctx context.Context, _ *wire.Command) *wire.Command {
			<-ctx.Done() // until the connection ends
			return nil
		}})
		for opaque := range int32(3) {
			peer.send(notify(wire.ReqGetConsumerRunningInfo, opaque, 0))
		}
		if got := peer.next(); got.Opaque != 2 || got.ResponseCode() != wire.RespSystemBusy {
			t.Errorf("the third request was answered %+v, want busy", got)
		}
		go peer.echo()
		mustCall(t.Context(), t, c, "x") // the reader is free
		c.Close()
		synctest.Wait() // handlers ended with their context
	})
}
