package broker

import (
	"slices"
	"strconv"
	"sync"
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

// toTimer sends a message that is due in the future by way of the timer topic. What is due already is stored at once.
func (d *draft) toTimer() (due int64, waits bool) {
	now := time.Now().UnixMilli()
	due, asked := timerDue(d.properties, now)
	if !asked || due <= now || d.topic == wire.TimerTopic {
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

// timers holds the messages that wait for their time, the next first, and one timer for that.
type timers struct {
	deliver func(raw []byte)

	mu      sync.Mutex
	running bool
	waiting []timed
	timer   *time.Timer
}

type timed struct {
	due int64
	raw []byte
}

func (t *timers) add(due int64, raw []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// Behind those that are due at the same time: they came first.
	i, _ := slices.BinarySearchFunc(t.waiting, due+1, func(w timed, due int64) int {
		if w.due < due {
			return -1
		}
		return 1
	})
	t.waiting = slices.Insert(t.waiting, i, timed{due, raw})
	if i == 0 {
		t.armLocked()
	}
}

func (t *timers) armLocked() {
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	if t.running && len(t.waiting) > 0 {
		t.timer = time.AfterFunc(time.Until(time.UnixMilli(t.waiting[0].due)), t.run)
	}
}

func (t *timers) run() {
	for _, raw := range t.takeDue() {
		t.deliver(raw)
	}
}

func (t *timers) takeDue() (due [][]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.running {
		return nil
	}
	now := time.Now().UnixMilli()
	for len(t.waiting) > 0 && t.waiting[0].due <= now {
		due = append(due, t.waiting[0].raw)
		t.waiting = t.waiting[1:]
	}
	t.armLocked()
	return due
}

func (t *timers) start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = true
	t.armLocked()
}

func (t *timers) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = false
	t.armLocked()
}

func (t *timers) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting)
}
