package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// screen prints timed lines, and below them a picture: redrawn in place on a terminal, from time to time elsewhere. Its
// methods are safe for concurrent use.
type screen struct {
	mu      sync.Mutex
	out     io.Writer
	size    func() (width, height int) // of the terminal; nil = not one
	began   time.Time
	picture func(width int) []string
	frozen  bool
	drawn   time.Time
	rows    []int // lengths of the picture's lines, as they stand on the terminal
}

// everyPiped is how often the picture is printed where it cannot be redrawn.
const everyPiped = 5 * time.Second

// newScreen prints to a file, with a picture that lives when that is a terminal which can.
func newScreen(out *os.File) *screen {
	s := &screen{out: out, began: time.Now()}
	fd := int(out.Fd())
	if _, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ); err == nil && os.Getenv("TERM") != "dumb" {
		s.size = func() (int, int) { return terminalSize(fd) }
	}
	return s
}

// terminalSize asks anew each time: people resize. A terminal that does not know its size has the usual one.
func terminalSize(fd int) (width, height int) {
	ws, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	if err != nil || ws.Col == 0 || ws.Row == 0 {
		return 80, 24
	}
	return int(ws.Col), int(ws.Row)
}

// say prints one line: time since the start, a word for what it is about, the text. On a terminal a long text goes on under
// its beginning.
func (s *screen) say(about, format string, args ...any) {
	at := time.Since(s.began)
	head := fmt.Sprintf("%02d:%02d %-7s ", int(at.Minutes()), int(at.Seconds())%60, about)
	lines := []string{fmt.Sprintf(format, args...)}
	if s.size != nil {
		width, _ := s.size()
		lines = wrap(lines[0], width-len(head))
	}
	s.print(head + strings.Join(lines, "\n"+strings.Repeat(" ", len(head))))
}

// wrap breaks a text at its blanks; a word that is too long stays whole, and the terminal breaks it.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.SplitSeq(text, " ") {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// print writes lines above the picture.
func (s *screen) print(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(strings.Join(lines, "\n") + "\n")
}

// draw replaces the picture, which is made for the width of the moment.
func (s *screen) draw(picture func(width int) []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.frozen:
		return
	case s.size != nil:
		s.picture = picture
		s.write("")
		return
	}
	if time.Since(s.drawn) >= everyPiped {
		s.drawn = time.Now()
		s.write(strings.Join(picture(plainWidth), "\n") + "\n")
	}
}

// plainWidth is the width of a picture that is no terminal's.
const plainWidth = 200

// freeze leaves the picture where it is; what is printed later comes below.
func (s *screen) freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.picture, s.rows, s.frozen = nil, nil, true
}

// write puts the picture away, prints, and draws it again, in one call, so that nothing flickers.
func (s *screen) write(text string) {
	var b strings.Builder
	if s.size != nil {
		width, height := s.size()
		s.erase(&b, width)
		b.WriteString(text)
		if s.picture != nil {
			lines := s.picture(width)
			lines = lines[:min(len(lines), max(0, height-1))] // a line that has left the screen cannot be redrawn
			for _, line := range lines {
				line = cut(line, width-1)
				s.rows = append(s.rows, utf8.RuneCountInString(line))
				b.WriteString(line + "\n")
			}
		}
		text = b.String()
	}
	_, _ = io.WriteString(s.out, text) // whoever closed the terminal has sent a signal
}

// erase moves up over the picture. A terminal that became narrower has wrapped its lines.
func (s *screen) erase(b *strings.Builder, width int) {
	rows := 0
	for _, n := range s.rows {
		rows += max(1, (n+width-1)/width)
	}
	if rows > 0 {
		fmt.Fprintf(b, "\r\x1b[%dA\x1b[J", rows)
	}
	s.rows = s.rows[:0]
}

// cut shortens a line to a width.
func cut(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	if width < 1 {
		return ""
	}
	return string([]rune(line)[:width-1]) + "…"
}
