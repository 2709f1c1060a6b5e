package broker

import (
	"errors"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// cannotStore refuses what the store does not take: with 14 as 5.3.3 does when its disk is full, or with 2 when clients send
// faster than the disk stores.
func (b *Broker) cannotStore(err error) *remote.Answer {
	switch {
	case errors.Is(err, store.ErrBusy):
		return plain(wire.RespSystemBusy, "broker busy, start flow control for a while: "+err.Error())
	case errors.Is(err, store.ErrFull), errors.Is(err, store.ErrFailed), errors.Is(err, store.ErrClosed):
		return plain(wire.RespServiceNotAvailable, "service not available now: "+err.Error())
	}
	return plain(wire.RespSystemError, err.Error())
}

// cannotSend is cannotStore for a send, whose refusals have a header.
func (b *Broker) cannotSend(err error) *remote.Answer {
	a := b.cannotStore(err)
	return b.refuseSend(a.Code, a.Remark)
}

// answering runs what makes an answer. When the store cannot be read the answer says so.
func (b *Broker) answering(answer func() *remote.Answer) (a *remote.Answer) {
	defer func() {
		switch thrown := recover().(type) {
		case nil:
		case readError:
			b.config.Logger.Error("reading the store", "error", thrown.Error())
			a = b.cannotStore(thrown.error)
		default:
			panic(thrown)
		}
	}()
	return answer()
}

// quietly runs something that no client waits for. When the store cannot be read it ends there.
func (b *Broker) quietly(do func()) {
	b.answering(func() *remote.Answer {
		do()
		return nil
	})
}

// reopened is told that the store had failed and was opened again: what the tables have that was not stored is forgotten.
// Until they are read the store goes on refusing.
func (b *Broker) reopened() error { return b.load() }

// resumed is told that something was stored of which nobody was told, or that the store can be used again.
func (b *Broker) resumed() {
	b.delays.arm(0)
	b.holds.each(func(p *pull) bool {
		_, next, ok := b.storage.Bounds(p.topic, p.queue)
		return ok && next > p.offset
	}, b.resume)
	b.changes.happened()
}
