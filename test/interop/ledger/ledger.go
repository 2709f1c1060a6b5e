// Package ledger is what the ledger plugin writes down and the tests read: each delivery of each message, when it starts
// and when it ends. A message is handled when an End without an error is there.
package ledger

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// Event tells what an entry is about.
type Event string

// The events of a delivery.
const (
	Start Event = "start"
	End   Event = "end"
)

// Entry is one line.
type Entry struct {
	Event   Event  `json:"event"`
	ID      string `json:"id"`
	Body    string `json:"body"` // Head of the body
	Attempt int    `json:"attempt"`
	Queue   string `json:"queue"`
	Offset  int64  `json:"offset"`
	PID     int    `json:"pid"`             // the plugin's
	Host    int    `json:"host"`            // its parent's: streamd's
	At      int64  `json:"at"`              // nanoseconds since 1970
	Error   string `json:"error,omitempty"` // the verdict, of an End; empty = acknowledged
}

// Head is the start of a body, without the blanks that pad it.
func Head(body []byte) string {
	return string(bytes.TrimSpace(body[:min(len(body), 200)]))
}

// Read reads all entries of a file; a file that is not there yet has none. A last line without its end is left out: its
// writer was killed, or is not done.
func Read(path string) ([]Entry, error) { return new(Reader).Read(path) }

// Reader reads a file that grows again and again, and what it has read only once. The zero Reader has read nothing. It is
// safe for concurrent use.
type Reader struct {
	mu      sync.Mutex
	offset  int64
	entries []Entry
}

// Read reads all entries, as the function does. Nobody may change those that it returns.
func (r *Reader) Read(path string) ([]Entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	if _, err := f.Seek(r.offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	for b := bufio.NewReader(f); ; {
		line, err := b.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return slices.Clip(r.entries), nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the ledger: %w", err)
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("reading the ledger: line %q: %w", line, err)
		}
		r.offset += int64(len(line))
		r.entries = append(r.entries, e)
	}
}

// Wait reads until ok accepts the entries, and returns them. When ctx ends first the error says so.
func Wait(ctx context.Context, path string, ok func([]Entry) bool) ([]Entry, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for r := new(Reader); ; {
		entries, err := r.Read(path)
		if err != nil || ok(entries) {
			return entries, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return entries, fmt.Errorf("waiting for the ledger, which has %d entries: %w", len(entries), ctx.Err())
		}
	}
}

// Handled counts, for each body, the deliveries that ended acknowledged.
func Handled(entries []Entry) map[string]int {
	n := map[string]int{}
	for _, e := range entries {
		if e.Event == End && e.Error == "" {
			n[e.Body]++
		}
	}
	return n
}

// InFlight lists the deliveries that started and did not end.
func InFlight(entries []Entry) []Entry {
	type delivery struct {
		body    string
		attempt int
		pid     int
	}
	open := map[delivery][]Entry{}
	for _, e := range entries {
		d := delivery{e.Body, e.Attempt, e.PID}
		if e.Event == Start {
			open[d] = append(open[d], e)
		} else if o := open[d]; len(o) > 0 {
			open[d] = o[1:]
		}
	}
	var left []Entry
	for _, o := range open {
		left = append(left, o...)
	}
	return left
}
