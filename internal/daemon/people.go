package daemon

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
)

// peopleHandler writes one readable line a record: time, level when it is not info, message, then the attributes.
type peopleHandler struct {
	level  slog.Leveler
	out    *lockedWriter
	prefix string // of groups
	attrs  string // of With, already rendered
}

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
	b.WriteString(h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		render(&b, h.prefix, a)
		return true
	})
	b.WriteByte('\n')
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	_, err := h.out.w.Write(b.Bytes())
	return err //nolint:wrapcheck // slog drops it
}

// WithAttrs implements slog.Handler.
func (h *peopleHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	var b bytes.Buffer
	for _, a := range attrs {
		render(&b, h.prefix, a)
	}
	c.attrs += b.String()
	return &c
}

// WithGroup implements slog.Handler.
func (h *peopleHandler) WithGroup(name string) slog.Handler {
	c := *h
	c.prefix += name + "."
	return &c
}

func render(b *bytes.Buffer, prefix string, a slog.Attr) {
	v := a.Value.Resolve()
	if a.Equal(slog.Attr{}) {
		return
	}
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, g := range v.Group() {
			render(b, prefix, g)
		}
		return
	}
	text := v.String()
	if text == "" || strings.ContainsAny(text, " \"=\n\t") {
		text = strconv.Quote(text)
	}
	b.WriteString("  " + prefix + a.Key + "=" + text)
}
