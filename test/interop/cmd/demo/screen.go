package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// screen prints timed lines, and below them a table: redrawn in place on a terminal, from time to time elsewhere.
type screen struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	began    time.Time
	table    []string
	drawn    time.Time
}

// everyPiped is how often the table is printed where it cannot be redrawn.
const everyPiped = 5 * time.Second

func newScreen(out *os.File) *screen {
	info, err := out.Stat()
	return &screen{out: out, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0, began: time.Now()}
}

// say prints one line: time since the start, a word for what it is about, the text.
func (s *screen) say(about, format string, args ...any) {
	at := time.Since(s.began)
	s.print(fmt.Sprintf("%02d:%02d %-7s %s", int(at.Minutes()), int(at.Seconds())%60, about, fmt.Sprintf(format, args...)))
}

// print writes lines above the table.
func (s *screen) print(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	fmt.Fprintln(s.out, strings.Join(lines, "\n"))
	if s.terminal && len(s.table) > 0 {
		fmt.Fprintln(s.out, strings.Join(s.table, "\n"))
	}
}

// draw replaces the table.
func (s *screen) draw(table []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.terminal && time.Since(s.drawn) < everyPiped {
		return
	}
	s.erase()
	s.table, s.drawn = table, time.Now()
	fmt.Fprintln(s.out, strings.Join(table, "\n"))
}

// freeze leaves the table where it is; what is printed later comes below.
func (s *screen) freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table = nil
}

func (s *screen) erase() {
	if s.terminal && len(s.table) > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", len(s.table))
	}
}
