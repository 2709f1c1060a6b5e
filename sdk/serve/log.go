package serve

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// Keys of a log line, as go-plugin's hosts read them; all three are strings. Anything else on the line is the author's.
const (
	keyLevel   = "@level"
	keyMessage = "@message"
	keyTime    = "@timestamp"
	keyTrace   = "trace_id"
	keySpan    = "span_id"
)

// timeFormat has microseconds, always.
const timeFormat = "2006-01-02T15:04:05.000000Z07:00"

// logHandler writes one JSON object a line, with the trace of the context.
type logHandler struct {
	slog.Handler
	grouped bool // a group is open: names of attributes cannot collide with the line's own
}

// NewLogger returns a logger whose lines the host understands.
func NewLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(&logHandler{Handler: slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: rename})})
}

// rename gives the fields of slog itself their names on the wire. The author's attributes never have these names here:
// guard has seen to it.
func rename(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.LevelKey:
		return slog.String(keyLevel, strings.ToLower(a.Value.String()))
	case slog.MessageKey:
		return slog.String(keyMessage, a.Value.String())
	case slog.TimeKey:
		return slog.String(keyTime, a.Value.Time().UTC().Format(timeFormat))
	default:
		return a
	}
}

// guard renames attributes of the author that would collide.
func guard(a slog.Attr) slog.Attr {
	if strings.HasPrefix(a.Key, "@") || slices.Contains([]string{slog.LevelKey, slog.MessageKey, slog.TimeKey, keyTrace, keySpan}, a.Key) {
		a.Key = "attr_" + strings.TrimPrefix(a.Key, "@")
	}
	return a
}

// Handle adds the trace and writes the line.
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if !h.grouped {
			a = guard(a)
		}
		out.AddAttrs(a)
		return true
	})
	if ctx != nil {
		if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
			out.AddAttrs(slog.String(keyTrace, sc.TraceID().String()), slog.String(keySpan, sc.SpanID().String()))
		}
	}
	return h.Handler.Handle(ctx, out)
}

// WithAttrs keeps the names apart too.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if !h.grouped {
		attrs = slices.Clone(attrs)
		for i := range attrs {
			attrs[i] = guard(attrs[i])
		}
	}
	return &logHandler{Handler: h.Handler.WithAttrs(attrs), grouped: h.grouped}
}

// WithGroup opens a group.
func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{Handler: h.Handler.WithGroup(name), grouped: h.grouped || name != ""}
}

func utf8Text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
