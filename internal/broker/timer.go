package broker

import (
	"strconv"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// maxTimerDelay is the furthest that a timer message may be due (timerMaxDelaySec; consumer-semantics.md 8.5).
const maxTimerDelay = 72 * time.Hour

// timerTick is RocketMQ's precision, to which the recorded due time is rounded (timerPrecisionMs).
const timerTick = 1000

// remarkTimer refuses a timer message that is due too late, in RocketMQ's words.
const remarkTimer = "timer message illegal, the delay time should not be bigger than the max delay 259200000ms; " +
	"or if set del msg, the delay time should be bigger than the current time"

// timerDue reads when a message asks to be delivered, in milliseconds; false when it does not. A level wins over a time.
func timerDue(p properties, now int64) (int64, bool) {
	if p.get(wire.PropDelayLevel) != "" {
		return 0, false
	}
	for _, t := range []struct {
		name        string
		base, scale int64
	}{
		{wire.PropTimerDelaySeconds, now, 1000}, {wire.PropTimerDelayMillis, now, 1}, {wire.PropTimerDeliver, 0, 1},
	} {
		if n, err := strconv.ParseInt(p.get(t.name), 10, 64); err == nil {
			return t.base + n*t.scale, true
		}
	}
	return 0, false
}

// timerFault tells that a timer is set to what is no number.
func timerFault(p properties) bool {
	if p.get(wire.PropDelayLevel) != "" {
		return false
	}
	for _, name := range []string{wire.PropTimerDelaySeconds, wire.PropTimerDelayMillis, wire.PropTimerDeliver} {
		if text := p.get(name); text != "" {
			_, err := strconv.ParseInt(text, 10, 64)
			return err != nil
		}
	}
	return false
}

// toTimer sends a message that is due in the future by way of the timer topic. What is due already is stored at once; a half
// message waits for the end of its transaction first, and one that was given up does not go on.
func (d *draft) toTimer(now int64) (due int64, waits bool) {
	due, asked := timerDue(d.properties, now)
	if !asked || due <= now || d.topic == wire.TimerTopic || d.topic == wire.HalfTopic || d.topic == wire.TransCheckMaxTopic {
		return 0, false
	}
	rounded := due / timerTick * timerTick
	if rounded == due {
		rounded -= timerTick
	}
	d.properties.set(wire.PropTimerOut, strconv.FormatInt(rounded, 10))
	d.properties.set(wire.PropRealTopic, d.topic)
	d.properties.set(wire.PropRealQueueID, strconv.Itoa(int(d.queue)))
	d.topic, d.queue = wire.TimerTopic, 0
	return due, true
}
