package plog

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Rate and Burst bound the lines of one process that reach the host's log.
const (
	Rate  = 1000 // lines a second
	Burst = 2000 // lines
)

// Pump carries the lines of one process to the host's logger and keeps its last words. One Pump may serve both of its
// streams, from two goroutines.
type Pump struct {
	logger *slog.Logger
	now    func() time.Time
	tail   *Tail

	mu      sync.Mutex
	limit   *limiter
	inPanic bool

	lines, dropped atomic.Uint64
}

// NewPump makes a Pump; logger carries the plugin's attributes already.
func NewPump(logger *slog.Logger, now func() time.Time) *Pump {
	return &Pump{logger: logger, now: now, tail: NewTail(TailSize), limit: newLimiter(Rate, Burst)}
}

// Tail is what the process wrote last on its standard error.
func (p *Pump) Tail() *Tail { return p.tail }

// Counts returns the lines read and those of them that the rate limit left out.
func (p *Pump) Counts() (lines, dropped uint64) { return p.lines.Load(), p.dropped.Load() }

// Stderr reads a log stream to its end.
func (p *Pump) Stderr(r io.Reader) error {
	err := Lines(r, func(line []byte, cut int) { p.line("stderr", line, cut) })
	p.flush()
	return err
}

// Stdout reads a stream that nothing should be written to any more.
func (p *Pump) Stdout(r io.Reader) error {
	return Lines(r, func(line []byte, cut int) { p.line("stdout", line, cut) })
}

func (p *Pump) line(stream string, line []byte, cut int) {
	p.lines.Add(1)
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	if stream == "stderr" {
		p.tail.add(line)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	ok, dropped := p.limit.allow(p.now())
	p.report(dropped)
	if !ok {
		return
	}
	e := Parse(line)
	if e.Panic {
		p.inPanic = true
	}
	if p.inPanic && stream == "stderr" {
		e.Level = slog.LevelError
	}
	p.emit(stream, e, cut)
}

//nolint:contextcheck,nolintlint // a line of output belongs to no request
func (p *Pump) emit(stream string, e Entry, cut int) {
	ctx := context.Background()
	if !p.logger.Enabled(ctx, e.Level) {
		return
	}
	// The plugin's own text is the message: that is what an operator reads and searches for.
	record := slog.NewRecord(p.now(), e.Level, e.Message, 0)
	if e.TraceID != "" {
		record.AddAttrs(slog.String("trace_id", e.TraceID))
	}
	if e.SpanID != "" {
		record.AddAttrs(slog.String("span_id", e.SpanID))
	}
	if stream != "stderr" {
		record.AddAttrs(slog.String("stream", stream))
	}
	if cut > 0 {
		record.AddAttrs(slog.Int("truncated_bytes", cut))
	}
	if len(e.Attrs) > 0 {
		record.AddAttrs(slog.GroupAttrs("fields", e.Attrs...))
	}
	// A sink that fails is the logger's matter; the plugin must be read on.
	_ = p.logger.Handler().Handle(ctx, record)
}

func (p *Pump) report(dropped int) {
	if dropped == 0 {
		return
	}
	p.dropped.Add(uint64(dropped))
	p.logger.Warn("plugin writes more log lines than are kept", "dropped_lines", dropped, "limit_per_second", Rate)
}

// flush says what was dropped at the end.
func (p *Pump) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report(p.limit.take())
}
