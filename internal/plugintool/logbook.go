package plugintool

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// Line is one log line.
type Line struct {
	From    string `json:"from"` // FromPlugin or FromStreamd
	Level   string `json:"level"`
	Text    string `json:"text"`
	TraceID string `json:"-"`
}

// Whose a Line is.
const (
	FromPlugin  = "plugin"
	FromStreamd = "streamd" // the host's, about the plugin
)

// own tells that a line is the host's about things going well, which a person who tries a handler did not ask for.
func (l *Line) own() bool {
	return l.From == FromStreamd && l.Level != "warn" && l.Level != "error"
}

// logBook keeps log lines, and finds those of a message by its trace. Safe for concurrent use.
type logBook struct {
	from string

	mu    sync.Mutex
	lines []Line
}

// Enabled implements slog.Handler: a person who tries a plugin wants to see all it says.
func (*logBook) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelDebug }

// Handle implements slog.Handler.
func (b *logBook) Handle(_ context.Context, r slog.Record) error {
	b.add(r, nil)
	return nil
}

func (b *logBook) add(r slog.Record, with []slog.Attr) {
	line := Line{From: b.from, Level: strings.ToLower(r.Level.String()), Text: r.Message}
	blocks := ""
	var note func(a slog.Attr) bool
	note = func(a slog.Attr) bool {
		v := a.Value.Resolve()
		switch {
		case v.Kind() == slog.KindGroup:
			for _, g := range v.Group() {
				note(g)
			}
		case a.Key == "trace_id":
			line.TraceID = v.String()
		case slices.Contains(unshown(), a.Key):
		case strings.Contains(v.String(), "\n"): // a stack
			blocks += "\n" + a.Key + ":\n" + strings.TrimRight(v.String(), "\n")
		default:
			line.Text += fmt.Sprintf(" %s=%v", a.Key, v)
		}
		return true
	}
	for _, a := range with {
		note(a)
	}
	r.Attrs(note)
	line.Text += blocks
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, line)
}

// unshown are the attributes that say what a person who tries one plugin knows.
func unshown() []string {
	return []string{"plugin", "pid", "generation", "span_id", "trace_flags", "process", "instance", "handler"}
}

// WithAttrs implements slog.Handler.
func (b *logBook) WithAttrs(attrs []slog.Attr) slog.Handler { return &logPage{b, attrs} }

// WithGroup implements slog.Handler; groups are of no use to a person here.
func (b *logBook) WithGroup(string) slog.Handler { return b }

// of returns the lines of a trace; "" = those of no message, at info and above.
func (b *logBook) of(traceID string) []Line {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := []Line{}
	for _, l := range b.lines {
		if l.TraceID == traceID && (traceID != "" || l.Level != "debug") {
			out = append(out, l)
		}
	}
	return out
}

// logPage is a logBook with attributes.
type logPage struct {
	book  *logBook
	attrs []slog.Attr
}

func (p *logPage) Enabled(ctx context.Context, l slog.Level) bool { return p.book.Enabled(ctx, l) }

func (p *logPage) Handle(_ context.Context, r slog.Record) error {
	p.book.add(r, p.attrs)
	return nil
}

func (p *logPage) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logPage{p.book, append(slices.Clone(p.attrs), attrs...)}
}

func (p *logPage) WithGroup(string) slog.Handler { return p }
