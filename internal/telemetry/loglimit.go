package telemetry

import (
	"context"
	"log/slog"
	"strings"
	"unicode"
)

// repeatsPerMinute is how often the same warning or error is told within a minute (design.md 15).
const repeatsPerMinute = 10

// LimitHandler holds back warnings and errors that repeat, so that one broken thing does not fill a log. The same is:
// the same level, message and attributes, where numbers, times and the digits of an error's text do not count. The next
// line of its kind that is told carries how many were held back. What is below a warning always passes. Safe for
// concurrent use.
type LimitHandler struct {
	next  slog.Handler
	limit *limiter
	given string // attributes and groups of With
}

// NewLimitHandler puts a limit before next.
func NewLimitHandler(next slog.Handler) *LimitHandler {
	return &LimitHandler{next: next, limit: &limiter{perMinute: repeatsPerMinute}}
}

// Enabled implements slog.Handler.
func (h *LimitHandler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

// Handle implements slog.Handler. The record's own time counts.
func (h *LimitHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return h.next.Handle(ctx, r) //nolint:wrapcheck // a handler in a chain
	}
	var key strings.Builder
	key.WriteString(r.Level.String() + " " + r.Message + h.given)
	r.Attrs(func(a slog.Attr) bool {
		kindOf(&key, a)
		return true
	})
	held, ok := h.limit.allow(key.String(), r.Time)
	if !ok {
		return nil
	}
	if held > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("held_back", held))
	}
	return h.next.Handle(ctx, r) //nolint:wrapcheck // as above
}

// WithAttrs implements slog.Handler.
func (h *LimitHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var given strings.Builder
	given.WriteString(h.given)
	for _, a := range attrs {
		kindOf(&given, a)
	}
	return &LimitHandler{h.next.WithAttrs(attrs), h.limit, given.String()}
}

// WithGroup implements slog.Handler.
func (h *LimitHandler) WithGroup(name string) slog.Handler {
	return &LimitHandler{h.next.WithGroup(name), h.limit, h.given + " " + name + "."}
}

// kindOf writes what tells an attribute's kind of event from another's. A group is what a plugin's author logged: it
// counts in full, so that lines that differ at all are unlike.
func kindOf(b *strings.Builder, a slog.Attr) {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindInt64, slog.KindUint64, slog.KindFloat64, slog.KindDuration, slog.KindTime:
		return
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			b.WriteString(" " + a.Key + "=" + strings.Map(withoutDigits, err.Error()))
			return
		}
	case slog.KindBool, slog.KindString, slog.KindGroup, slog.KindLogValuer:
	}
	b.WriteString(" " + a.Key + "=" + v.String())
}

func withoutDigits(r rune) rune {
	if unicode.IsDigit(r) {
		return -1
	}
	return r
}
