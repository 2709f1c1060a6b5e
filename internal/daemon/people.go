package daemon

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// peopleHandler writes one readable line a record: time, level when it is not info, message, then the attributes. Values of
// several lines, such as stacks, follow below it, indented.
type peopleHandler struct {
	level  slog.Leveler
	out    *lockedWriter
	prefix string   // of groups
	with   rendered // of With
}

// rendered are attributes as text.
type rendered struct{ line, below string }

type lockedWriter struct {
	mu sync.Mutex // one line at a time
	w  io.Writer
}

func newPeopleHandler(w io.Writer, level slog.Leveler) *peopleHandler {
	return &peopleHandler{level: level, out: &lockedWriter{w: w}}
}

// Enabled implements slog.Handler.
func (h *peopleHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level.Level() }

// Handle implements slog.Handler.
func (h *peopleHandler) Handle(_ context.Context, r slog.Record) error {
	var b bytes.Buffer
	b.WriteString(r.Time.Format("15:04:05.000 "))
	if r.Level != slog.LevelInfo {
		b.WriteString(r.Level.String() + " ")
	}
	b.WriteString(r.Message)
	text := h.with
	r.Attrs(func(a slog.Attr) bool {
		text.add(h.prefix, a)
		return true
	})
	b.WriteString(text.line + text.below)
	b.WriteByte('\n')
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	_, err := h.out.w.Write(b.Bytes())
	return err //nolint:wrapcheck // slog drops it
}

// WithAttrs implements slog.Handler.
func (h *peopleHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	for _, a := range attrs {
		c.with.add(h.prefix, a)
	}
	return &c
}

// WithGroup implements slog.Handler.
func (h *peopleHandler) WithGroup(name string) slog.Handler {
	c := *h
	c.prefix += name + "."
	return &c
}

func (t *rendered) add(prefix string, a slog.Attr) {
	v := a.Value.Resolve()
	if a.Equal(slog.Attr{}) {
		return
	}
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, g := range v.Group() {
			t.add(prefix, g)
		}
		return
	}
	text := v.String()
	if strings.Contains(text, "\n") {
		t.below += "\n    " + prefix + a.Key + ":" + block(text)
		return
	}
	if text == "" || strings.ContainsAny(text, " \"=\n\t") {
		text = strconv.Quote(text)
	}
	t.line += "  " + prefix + a.Key + "=" + text
}

// block indents every line of a text, so that none looks like a line of the log, and takes out what a terminal would obey.
func block(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("\n        ")
		for _, r := range strings.TrimRight(line, "\r\n") {
			if r != '\t' && !unicode.IsPrint(r) {
				r = unicode.ReplacementChar
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}
