package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"time"
)

// firstOrder is the number of the first order's id.
const firstOrder = 1001

// load is a `streamd produce` that is fed with orders.
type load struct {
	*child
	last chan string // its last line: what it stored
	fed  chan struct{}
}

// startLoad feeds orders at a steady rate until ctx ends; then `streamd produce` ends by itself.
func (d *demo) startLoad(ctx context.Context, nameServer string) (*load, error) {
	l := &load{last: make(chan string, 1), fed: make(chan struct{})}
	var err error
	l.child, err = start("streamd produce", l.keep, filepath.Join(d.o.bin, "streamd"),
		"produce", "-n", nameServer, "-t", topic, "--json", "--trace", "--in-flight", "4")
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(l.fed)
		l.feed(ctx, d.o.rate)
	}()
	return l, nil
}

// keep holds the last line; the reader of lines is the only caller.
func (l *load) keep(line string) {
	select {
	case <-l.last:
	default:
	}
	l.last <- line
}

// feed writes orders in small steps, so that none waits in a pipe when the demo ends. A pipe that breaks ends it: how the
// process ended is told by finish.
func (l *load) feed(ctx context.Context, rate int) {
	defer l.stdin.Close() //nolint:errcheck // the process sees the end either way
	const step = 20 * time.Millisecond
	tick := time.NewTicker(step)
	defer tick.Stop()
	begin, sent := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		due := min(int(time.Since(begin).Seconds()*float64(rate)), sent+rate) // after a pause no more than a second's worth
		for ; sent < due; sent++ {
			if _, err := io.WriteString(l.stdin, order(sent)); err != nil {
				return
			}
		}
	}
}

// order is one line for `streamd produce --json`.
func order(n int) string {
	id := fmt.Sprintf("A-%d", firstOrder+n)
	body := map[string]any{"id": id, "amount": float64(500+n*37%20000) / 100, "currency": "EUR", "customer": fmt.Sprintf("C-%03d", n*7%311)}
	line, err := json.Marshal(map[string]any{"body": body, "keys": []string{id}, "tag": "created"})
	if err != nil {
		panic(err) // maps of texts and numbers always marshal
	}
	return string(line) + "\n"
}

// finish waits until what was fed is stored and returns what `streamd produce` says of it.
func (l *load) finish() (string, error) {
	<-l.fed
	select {
	case <-l.done:
	case <-time.After(15 * time.Second):
		l.kill()
		return "", fmt.Errorf("%s did not end within 15 s of its last order", l.name)
	}
	var said string
	select {
	case said = <-l.last:
	default:
	}
	if l.err != nil {
		return said, fmt.Errorf("%s: %w: %s", l.name, l.err, said)
	}
	return said, nil
}
