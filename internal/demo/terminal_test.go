package demo

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// terminal understands what the demo writes to one: texts, line ends, moving up, and clearing to the end. It wraps long lines
// as a terminal does, and keeps what has scrolled away.
type terminal struct {
	width, height int
	lines         [][]rune // all of them; the screen is the last ones
	row, col      int
	pending       []byte
}

func newTerminal(width, height int) *terminal {
	return &terminal{width: width, height: height, lines: [][]rune{nil}}
}

func (t *terminal) Write(text []byte) (int, error) {
	t.pending = append(t.pending, text...)
	for len(t.pending) > 0 {
		n := t.step(t.pending)
		if n == 0 {
			break // not whole yet
		}
		t.pending = t.pending[n:]
	}
	return len(text), nil
}

// step takes one character or control sequence.
func (t *terminal) step(b []byte) int {
	switch {
	case b[0] == '\r':
		t.col = 0
		return 1
	case b[0] == '\n': // the kernel writes a return before it
		t.down()
		t.col = 0
		return 1
	case b[0] == 0x1b:
		return t.control(b)
	case !utf8.FullRune(b):
		return 0
	}
	r, n := utf8.DecodeRune(b)
	if t.col == t.width {
		t.down()
		t.col = 0
	}
	line := t.lines[t.row]
	for len(line) <= t.col {
		line = append(line, ' ')
	}
	line[t.col] = r
	t.lines[t.row] = line
	t.col++
	return n
}

func (t *terminal) down() {
	if t.row++; t.row == len(t.lines) {
		t.lines = append(t.lines, nil)
	}
}

func (t *terminal) control(b []byte) int {
	end := 2
	for end < len(b) && b[end] >= '0' && b[end] <= '?' {
		end++
	}
	if end >= len(b) {
		return 0
	}
	arg, _ := strconv.Atoi(string(b[2:end]))
	switch b[end] {
	case 'A':
		top := max(0, len(t.lines)-t.height)
		t.row = max(top, t.row-arg)
	case 'J':
		t.lines = t.lines[:t.row+1]
		t.lines[t.row] = t.lines[t.row][:min(t.col, len(t.lines[t.row]))]
	default:
		panic("the demo writes a sequence that this terminal does not know: " + strconv.Quote(string(b[:end+1])))
	}
	return end + 1
}

// reflow makes the terminal narrower: it wraps the lines it has.
func (t *terminal) reflow(width int) {
	old := t.lines[:t.row]
	t.width, t.lines = width, nil
	for _, l := range old {
		for len(l) > width {
			t.lines, l = append(t.lines, l[:width:width]), l[width:]
		}
		t.lines = append(t.lines, l)
	}
	t.row, t.col = len(t.lines), 0
	t.lines = append(t.lines, nil)
}

func (t *terminal) text() string {
	var out []string
	for _, l := range t.lines {
		out = append(out, strings.TrimRight(string(l), " "))
	}
	return strings.Join(out, "\n")
}

// openTerminal opens a pseudo-terminal: what is read from master is what the program at the other end writes.
func openTerminal(t *testing.T, width, height int) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	resize(t, master, width, height)
	return master, slave
}

func resize(t *testing.T, terminal *os.File, width, height int) {
	t.Helper()
	size := unix.Winsize{Col: uint16(width), Row: uint16(height)}
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &size); err != nil {
		t.Fatal(err)
	}
}
