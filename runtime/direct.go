package runtime

import (
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/sdk"
)

// directLimit bounds the handler's answer to 309: the broker waits 10 s.
const directLimit = 9 * time.Second

// consumeDirectly answers 309: an operator hands one message to the handler. Its verdict is told, when its outputs are stored, and
// nothing is settled.
func (m *member) consumeDirectly(msg *wire.Message, broker string) *wire.ConsumeDirectlyResult {
	start := m.s.rt.Now()
	q := Queue{Topic: string(msg.Topic), Broker: broker, ID: msg.QueueID}
	answer := make(chan frame.Verdict, 1)
	own, one := queue.NewDirect(q, msg, func(v frame.Verdict) { answer <- v })
	one[0].Topic = wire.WithoutNamespace(m.s.config().Namespace, one[0].Topic)
	m.s.sink.Offer(own, one)
	timer := time.NewTimer(directLimit)
	defer timer.Stop()
	res := &wire.ConsumeDirectlyResult{AutoCommit: true, Order: m.s.config().Order.ordered()}
	select {
	case v := <-answer:
		res.Result, res.Remark = directResult(v)
	case <-timer.C:
		own.End()
		m.s.sink.Revoke(own, true)
		res.Result, res.Remark = wire.ConsumeThrewException, "the handler did not answer within "+directLimit.String()+", or what it emitted is not stored"+m.whyNoAnswer()
	case <-m.done:
		res.Result, res.Remark = wire.ConsumeThrewException, "the member has stopped"
	}
	res.SpentMillis = m.s.rt.Now().Sub(start).Milliseconds()
	return res
}

// whyNoAnswer says what holds the handler, if something is known to.
func (m *member) whyNoAnswer() string {
	if h := m.s.sink.status().Hold; h.Held() {
		return ": " + string(h.Kind) + ": " + h.Text
	}
	return ""
}

// directResult says a verdict in Java's words (CMResult): a listener that fails returns RECONSUME_LATER, one that panics
// throws. It has no word for a reject.
func directResult(v frame.Verdict) (wire.ConsumeResult, string) {
	text := v.Class + ": " + v.Text
	switch {
	case v.Kind == frame.VerdictAck:
		return wire.ConsumeSuccess, ""
	case v.Kind == frame.VerdictRetry && v.Class == sdk.ClassPanic:
		return wire.ConsumeThrewException, text
	case v.Kind == frame.VerdictRetry:
		return wire.ConsumeLater, text
	case v.Kind == frame.VerdictReject:
		return wire.ConsumeThrewException, "rejected: " + text
	default:
		return wire.ConsumeThrewException, text
	}
}
