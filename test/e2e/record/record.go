// Package record is what the witness plugin writes and the tests read: a line when a delivery starts, and one when it ends.
package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Line is one event of a delivery.
type Line struct {
	End     bool   `json:"end,omitempty"` // else the start
	Body    string `json:"body"`
	Topic   string `json:"topic"`
	Attempt int    `json:"attempt"`
	Queue   int32  `json:"queue"`
	Offset  int64  `json:"offset"`
	PID     int    `json:"pid"`
	Error   string `json:"error,omitempty"` // of an end; empty = acknowledged
}

// Write appends a line to a file that several processes may share: one write each, so that lines do not mix.
func (l Line) Write(f *os.File) error {
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("writing the record: %w", err)
	}
	if _, err := f.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("writing the record: %w", err)
	}
	return nil
}

// Reader reads on in a file at each call.
type Reader struct {
	path   string
	offset int64
	lines  []Line
}

// NewReader reads a file that need not be there yet.
func NewReader(path string) *Reader { return &Reader{path: path} }

// All returns all lines so far. A last line without its end is left for the next call.
func (r *Reader) All() ([]Line, error) {
	f, err := os.Open(r.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the record: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	if _, err := f.Seek(r.offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading the record: %w", err)
	}
	for in := bufio.NewReader(f); ; {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return r.lines, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the record: %w", err)
		}
		var l Line
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("reading the record: line %q: %w", text, err)
		}
		r.offset += int64(len(text))
		r.lines = append(r.lines, l)
	}
}
