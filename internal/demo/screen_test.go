package demo

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestScreen_redrawsInPlace draws pictures of many heights between lines of all lengths, on terminals of all widths: whatever happens, one picture is to be seen, at the bottom, with every line above it.
func TestScreen_redrawsInPlace(t *testing.T) {
	t.Parallel()
	for width := 20; width <= 120; width += 7 {
		term := newTerminal(width, 12)
		s := &screen{out: term, began: time.Now(), size: func() (int, int) { return term.width, term.height }}
		for i := range 40 {
			s.draw(func(w int) []string {
				lines := []string{" MEMBER " + strings.Repeat("x", w)}
				for n := range 1 + i%3 {
					lines = append(lines, fmt.Sprintf(" row %d of %d", n, i))
				}
				return lines
			})
			s.print(fmt.Sprintf("line-%d- %s", i, strings.Repeat("y", i*5)))
		}
		text := term.text()
		if n := strings.Count(text, "MEMBER"); n != 1 {
			t.Fatalf("at a width of %d the picture is there %d times:\n%s", width, n, text)
		}
		for i := range 40 {
			if !strings.Contains(text, fmt.Sprintf("line-%d-", i)) {
				t.Fatalf("at a width of %d line %d is gone:\n%s", width, i, text)
			}
		}
		if !strings.HasSuffix(text, " row 0 of 39\n") {
			t.Fatalf("at a width of %d the picture is not at the bottom:\n%s", width, text)
		}
		s.freeze()
		s.print("the end")
		if !strings.HasSuffix(term.text(), " row 0 of 39\nthe end\n") {
			t.Fatalf("a frozen picture did not stay:\n%s", term.text())
		}
	}
}

// TestScreen_narrower draws again on a terminal that has wrapped the picture, because somebody made it narrower.
func TestScreen_narrower(t *testing.T) {
	t.Parallel()
	term := newTerminal(80, 12)
	s := &screen{out: term, began: time.Now(), size: func() (int, int) { return term.width, term.height }}
	picture := func(int) []string {
		return []string{" MEMBER " + strings.Repeat("x", 60), " m1 " + strings.Repeat("y", 40)}
	}
	s.print("before")
	for width := 80; width > 20; width -= 9 {
		term.reflow(width)
		s.draw(picture)
		if text := term.text(); !strings.HasPrefix(text, "before\n MEMBER") || strings.Count(text, "\n") != 3 {
			t.Fatalf("at a width of %d:\n%s", width, text)
		}
	}
}

// TestScreen_wraps has a long text go on under its beginning.
func TestScreen_wraps(t *testing.T) {
	t.Parallel()
	term := newTerminal(30, 12)
	s := &screen{out: term, began: time.Now(), size: func() (int, int) { return term.width, term.height }}
	s.say("load", "200 orders a second, some of which fail")
	want := "00:00 load    200 orders a\n              second, some of\n              which fail\n"
	if got := term.text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestScreen_tooLow shows what fits of a picture that is higher than the terminal.
func TestScreen_tooLow(t *testing.T) {
	t.Parallel()
	term := newTerminal(40, 4)
	s := &screen{out: term, began: time.Now(), size: func() (int, int) { return term.width, term.height }}
	for range 3 {
		s.draw(func(int) []string { return []string{"1", "2", "3", "4", "5", "6"} })
	}
	if got := term.text(); got != "1\n2\n3\n" {
		t.Errorf("got %q", got)
	}
}

// TestScreen_pipedIsPlain has no picture that moves where nobody looks, and draws one from time to time.
func TestScreen_pipedIsPlain(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := &screen{out: &out, began: time.Now()}
	for range 5 {
		s.draw(func(int) []string { return []string{"picture"} })
		s.print("line")
	}
	if got, want := out.String(), "picture\n"+strings.Repeat("line\n", 5); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
