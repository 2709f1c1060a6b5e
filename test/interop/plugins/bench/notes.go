package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/streamd/streamd/sdk"
)

var errShort = errors.New("body is shorter than a clock reading")

// latency keeps the ages in memory and writes them once: writing is not what is measured.
type latency struct {
	Config
	ages []int64
	seen atomic.Int64
	done atomic.Int64
}

func newLatency(_ context.Context, c Config, _ sdk.Env) (*latency, error) {
	return &latency{Config: c, ages: make([]int64, c.Count)}, nil
}

// Handle notes one age.
func (l *latency) Handle(_ context.Context, m *sdk.Message) error {
	now := time.Now().UnixNano()
	if len(m.Body()) < 8 {
		return sdk.Reject("short", errShort)
	}
	i := l.seen.Add(1) - 1
	if i >= int64(len(l.ages)) {
		return nil
	}
	l.ages[i] = now - int64(binary.BigEndian.Uint64(m.Body())) //nolint:gosec // a clock of this century
	if l.done.Add(1) == int64(len(l.ages)) {
		return l.write()
	}
	return nil
}

func (l *latency) write() error {
	var out strings.Builder
	out.WriteString("latency")
	for _, a := range l.ages {
		fmt.Fprintf(&out, " %d", a)
	}
	return appendTo(l.File, out.String()+"\n")
}

// deliveries writes one line for each delivery: queue, offset, nanoseconds since 1970.
type deliveries struct{ file *os.File }

func newDeliveries(_ context.Context, c Config, _ sdk.Env) (*deliveries, error) {
	f, err := os.OpenFile(c.File, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, sdk.At("/file", err)
	}
	return &deliveries{f}, nil
}

// Handle writes one line in one write.
func (d *deliveries) Handle(_ context.Context, m *sdk.Message) error {
	q := m.Queue()
	line := fmt.Sprintf("got %s/%d %d %d\n", q.Broker, q.ID, m.Offset(), time.Now().UnixNano())
	if _, err := d.file.WriteString(line); err != nil {
		return fmt.Errorf("writing a delivery: %w", err)
	}
	return nil
}

// Close ends the notes.
func (d *deliveries) Close() error { return d.file.Close() }
