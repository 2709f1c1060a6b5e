package queue

import (
	"fmt"
	"net/netip"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// unpacker turns the body of a pull into the deliveries of a chunk.
type unpacker struct {
	w        *Worker
	c        *Chunk
	msg      wire.Message // the one at hand
	expected int64        // lowest offset that may come next
	floor    int64        // the same, but for the last batch, of which only the first offset is sure
	tags     map[string]struct{}
	filtered int
	extra    int64 // bytes of unpacked bodies
	err      error // the message at expected does not decode
}

// run stops at the first message that does not decode; what came before it is taken.
func (u *unpacker) run(body []byte) {
	u.floor = u.expected
	for len(body) > 0 {
		n, keep, err := u.one(body)
		switch {
		case err != nil:
			u.err = err
			return
		case !keep:
		case isBatch(&u.msg):
			u.unwrap(&u.msg)
		default:
			u.take(&u.msg)
		}
		body = body[n:]
	}
}

func (u *unpacker) one(body []byte) (n int, keep bool, err error) {
	m := &u.msg
	if n, err = m.Decode(body); err == nil {
		err = m.CheckCRC()
	}
	if err != nil {
		return 0, false, fmt.Errorf("decoding a message of %s: %w", u.w.cfg.Queue, err)
	}
	if m.QueueID != u.w.cfg.Queue.ID {
		return 0, false, fmt.Errorf("message of queue %d in an answer for queue %d", m.QueueID, u.w.cfg.Queue.ID)
	}
	if m.QueueOffset < u.floor && (!isBatch(m) || u.w.cfg.Retry) {
		return n, false, nil // seen before: brokers may start a little below what was asked for
	}
	return n, true, nil
}

// take makes a delivery of a message, unless it is filtered away.
func (u *unpacker) take(m *wire.Message) {
	u.expected = m.QueueOffset + 1
	u.floor = u.expected
	props := ScanProperties(m.Properties)
	if !u.wanted(props.Tags()) {
		u.filtered++
		return
	}
	body, extra := u.w.plainBody(m)
	u.extra += int64(extra)
	u.place(m, body, props, props.RetryTopic()).raw = m.Raw
}

func (u *unpacker) place(m *wire.Message, body []byte, props Properties, retry []byte) *Delivery {
	d := u.c.next()
	d.Own, d.Offset, d.StoreMillis, d.BornMillis, d.LogOffset = u.w.own, m.QueueOffset, m.StoreMillis, m.BornMillis, m.LogOffset
	d.Attempt = int(m.ReconsumeTimes) + 1
	d.Topic = u.w.originalTopic(retry)
	d.Body, d.Props, d.storeHost = body, props, u.w.host(m.StoreHost)
	return d
}

// host returns one pointer for all messages of a run that one broker stored.
func (w *Worker) host(a netip.AddrPort) *netip.AddrPort {
	if w.lastHost == nil || *w.lastHost != a {
		h := a // only this one is allocated
		w.lastHost = &h
	}
	return w.lastHost
}

// wanted is the client's side of the tag filter: brokers compare hashes only (consumer-semantics.md 3.5).
func (u *unpacker) wanted(tag []byte) bool {
	if u.tags == nil {
		return true
	}
	_, ok := u.tags[string(tag)]
	return ok
}

// originalTopic is the topic a handler sees; a retry topic mostly carries runs of one topic, so the last is kept.
func (w *Worker) originalTopic(retry []byte) string {
	if !w.cfg.Retry || len(retry) == 0 {
		return w.cfg.Queue.Topic
	}
	if string(retry) != w.lastRetry {
		w.lastRetry = string(retry)
		w.lastTopic = wire.WithoutNamespace(w.cfg.Namespace, w.lastRetry)
	}
	return w.lastTopic
}

// mostInflated is the largest body that is unpacked; brokers take 4 MiB, some are set to take more.
const mostInflated = 64 << 20

// plainBody returns the body uncompressed and the bytes that took. A body that does not unpack is a producer's mistake,
// not a wire's: its checksum was right. The handler gets it as it is stored, with a warning here, and decides.
func (w *Worker) plainBody(m *wire.Message) (body []byte, extra int) {
	if !m.IsCompressed() {
		return m.Body, 0
	}
	if w.inflater == nil {
		w.inflater = wire.NewInflater(mostInflated)
	}
	body, err := w.inflater.AppendBody(nil, m)
	if err != nil {
		w.cfg.Logger.Warn("body does not uncompress, the handler gets it as stored", "queue", w.cfg.Queue.String(), "offset", m.QueueOffset, "error", err.Error())
		return m.Body, 0
	}
	return body, len(body)
}
