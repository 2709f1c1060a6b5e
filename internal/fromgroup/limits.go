package fromgroup

import (
	"fmt"
	"strconv"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// The bounds of config.Config, within which what members tell is brought.
const (
	maxCount   = 4096
	maxWindow  = 1 << 20
	maxRetries = 1000
)

// Java's defaults where streamd's differ for a reason that Java members cannot have had in mind: memory.
const (
	javaQueueMiB   = 100
	defaultQueue   = 1000
	defaultSpan    = 2000
	defaultTries   = 16
	streamMiB      = 64 // window.stream_bytes
	javaMaxMinutes = 15 // consumeTimeout
)

// count reads a property that is a number, brought into bounds; ok is false when no member tells one.
func (d *draft) count(name string, least, most int) (n int, source string, ok bool) {
	a := d.agreed(name, d.facts.told(name))
	n, err := strconv.Atoi(a.value)
	if err != nil || n < least {
		return 0, a.source, false
	}
	if n > most {
		return most, fmt.Sprintf("%s is %d, the most is %d", a.source, n, most), true
	}
	return n, a.source, true
}

func (d *draft) limits() {
	d.threads()
	d.deadline()
	p := &d.page
	if n, source, ok := d.count("consumeMessageBatchMaxSize", 1, maxCount); ok && n > 1 {
		p.line(4, "batch: {max: "+number(n)+"}", source+"; a batch handler gets so many at once")
	} else if ok {
		p.off(4, "batch: {max: 32}", source+" is 1: a handler gets one at a time, whatever crosses to the plugin at once")
	}
	d.pull()
	d.window()
}

func (d *draft) threads() {
	p := &d.page
	n, source, ok := d.count(wire.RunningThreads, 1, maxCount)
	if !ok {
		if n, source, ok = d.count("consumeThreadMin", 1, maxCount); !ok {
			p.off(4, "concurrency: 20", "not known: consumeThreadMin of the consumer")
			return
		}
	}
	p.line(4, "concurrency: "+number(n), source)
}

func (d *draft) deadline() {
	p := &d.page
	n, source, ok := d.count("consumeTimeout", 1, 24*60)
	switch {
	case !ok:
		p.off(4, "deadline: 60s", "not known: consumeTimeout of the consumer, 15 minutes unless it says otherwise")
	case d.order != "none":
		p.line(4, "deadline: "+number(n)+"m", source+", which Java applies to no orderly listener; streamd does")
	case n == javaMaxMinutes:
		p.line(4, "deadline: "+number(n)+"m", source+", Java's default; streamd's, 60s, finds a handler that hangs sooner")
	default:
		p.line(4, "deadline: "+number(n)+"m", source)
	}
}

func (d *draft) pull() {
	p := &d.page
	n, source, ok := d.count("pullBatchSize", 1, maxCount)
	if !ok {
		return
	}
	p.line(4, "pull:", "")
	p.line(6, "max: "+number(n), source)
	if bytes, source, ok := d.count("pullBatchSizeInBytes", 1024, 16<<20); ok && bytes%1024 == 0 {
		p.line(6, "bytes: "+number(bytes/1024)+"KiB", source)
	}
}

// window takes the thresholds. streamd wants what can be reached: no more messages than the span, and no more bytes for a
// queue than for the stream.
func (d *draft) window() {
	p := &d.page
	messages, source, ok := d.count("pullThresholdForQueue", 1, maxWindow)
	if !ok {
		return
	}
	p.line(4, "window:", "")
	p.line(6, "messages: "+number(messages), source)
	if span, source, ok := d.count("consumeConcurrentlyMaxSpan", 1, maxWindow); ok {
		if span < messages {
			span, source = messages, fmt.Sprintf("%s is %d, less than pullThresholdForQueue", source, span)
		}
		p.line(6, "span: "+number(span), source)
	}
	mib, source, ok := d.count("pullThresholdSizeForQueue", 1, 64<<10)
	total, totalSource, limited := d.count("pullThresholdSizeForTopic", 1, 64<<10)
	switch {
	case !ok:
	case mib == javaQueueMiB && !limited:
		p.off(6, "bytes: 16MiB", source+" is 100 MiB, Java's default, for every queue; streamd's bounds the stream too (stream_bytes: 64MiB)")
	default:
		if !limited {
			total, totalSource = max(streamMiB, mib), "no limit there: pullThresholdSizeForTopic"
		}
		p.line(6, "bytes: "+number(min(mib, total))+"MiB", source)
		p.line(6, "stream_bytes: "+number(total)+"MiB", totalSource+"; here over all queues of the stream")
	}
	if n, source, ok := d.count("pullThresholdForTopic", 1, 1<<30); ok {
		d.warn("%s is %d: streamd has no limit of messages per topic, only per queue (window.messages) and of bytes (window.stream_bytes)", source, n)
	}
}
