// Package plain writes what people read in a terminal: tables, and counts of things.
//
// Promises: the columns of a table line up, no line ends in spaces, and no output begins or ends with an empty line, whatever
// is empty in it. The package starts no goroutines.
package plain

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"
)

// Count is a number of things: 1 stream, 2 streams. The plural is the thing and an s.
func Count[N int | int64 | uint64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Table lines up cells that are separated by tabs. Lines without a tab, or empty ones, end a table and begin another.
type Table struct {
	*tabwriter.Writer

	lines *lines
}

// NewTable makes a table that Flush writes to w.
func NewTable(w io.Writer) *Table {
	l := &lines{to: w}
	return &Table{tabwriter.NewWriter(l, 0, 0, 2, ' ', 0), l}
}

// Flush writes what was given.
func (t *Table) Flush() error {
	if err := t.Writer.Flush(); err != nil {
		return err //nolint:wrapcheck // of the writer below
	}
	return t.lines.end()
}

// lines takes spaces off the ends of lines, and empty lines off the beginning and the end.
type lines struct {
	to    io.Writer
	text  bytes.Buffer // of the line that is not whole yet
	began bool
	empty int // lines since the last one that was written
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	for rest := p; ; {
		line, after, whole := bytes.Cut(rest, []byte{'\n'})
		l.text.Write(line)
		if !whole {
			return len(p), nil
		}
		if err := l.end(); err != nil {
			return 0, err
		}
		rest = after
	}
}

// end writes the line that was gathered.
func (l *lines) end() error {
	line := bytes.TrimRight(l.text.Bytes(), " ")
	defer l.text.Reset()
	if len(line) == 0 {
		l.empty++
		return nil
	}
	if !l.began {
		l.empty = 0
	}
	out := bytes.Repeat([]byte{'\n'}, l.empty)
	out = append(append(out, line...), '\n')
	l.began, l.empty = true, 0
	_, err := l.to.Write(out)
	return err //nolint:wrapcheck // of the writer below
}
