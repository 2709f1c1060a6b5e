package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/telemetry"
)

// logging is the log of the whole process: its level and its secrets may change while it runs.
type logging struct {
	level   slog.LevelVar
	secrets atomic.Pointer[strings.Replacer]
	Logger  *slog.Logger

	mu    sync.Mutex
	known []string // by provenance, of the config in force
	told  []string // by the schemas of components; kept for good
}

// newLogging writes to w, as text for people when w is a terminal and as JSON when it is piped, unless c says.
func newLogging(w io.Writer, c config.Log, secrets []string) (*logging, error) {
	l := &logging{}
	if err := l.apply(c.Level, secrets); err != nil {
		return nil, err
	}
	var h slog.Handler
	if c.Format == "text" || c.Format == "auto" && isTerminal(w) {
		h = newPeopleHandler(w, &l.level)
	} else {
		h = slog.NewJSONHandler(w, &slog.HandlerOptions{Level: &l.level})
	}
	l.Logger = slog.New(telemetry.NewLimitHandler(telemetry.LogHandler{Handler: redactor{h, &l.secrets}}))
	return l, nil
}

// apply changes what may change in a running process.
func (l *logging) apply(level string, secrets []string) error {
	var lv slog.Level
	if err := lv.UnmarshalText([]byte(level)); err != nil {
		return fmt.Errorf("reading log.level: %w", err)
	}
	l.level.Set(lv)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = secrets
	l.redact()
	return nil
}

// learn keeps more secrets out of the log from now on.
func (l *logging) learn(secrets []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range secrets {
		if !slices.Contains(l.told, s) {
			l.told = append(l.told, s)
		}
	}
	l.redact()
}

// clean takes the secrets out of a text that leaves the process by another way than the log. The text may be JSON.
func (l *logging) clean(text string) string { return l.secrets.Load().Replace(text) }

// cleanError is an error whose text has lost its secrets.
type cleanError struct {
	error
	text string
}

func (e *cleanError) Error() string { return e.text }
func (e *cleanError) Unwrap() error { return e.error }

// cleanErr takes the secrets out of an error that leaves the process.
func (l *logging) cleanErr(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if clean := l.clean(text); clean != text {
		return &cleanError{err, clean}
	}
	return err
}

// redact makes the replacer anew: longer secrets first, since one may be a part of another.
func (l *logging) redact() {
	var all []string
	for _, s := range slices.Concat(l.known, l.told) {
		all = append(all, forms(s)...)
	}
	slices.SortStableFunc(all, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(all))
	for _, s := range all {
		pairs = append(pairs, s, "[redacted]")
	}
	l.secrets.Store(strings.NewReplacer(pairs...))
}

// minLine is from how many bytes on a line of a longer secret, such as a key in PEM, is told from other text.
const minLine = 16

// forms are the texts by which a secret may stand in another: itself, as JSON writes it, and each of its lines.
func forms(secret string) []string {
	all := []string{secret}
	if text, err := json.Marshal(secret); err == nil {
		if inner := string(text[1 : len(text)-1]); inner != secret {
			all = append(all, inner)
		}
	}
	if strings.Contains(secret, "\n") {
		for line := range strings.Lines(secret) {
			if line = strings.TrimSpace(line); len(line) >= minLine {
				all = append(all, line)
			}
		}
	}
	return all
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// redactor takes secrets out of messages and attributes.
type redactor struct {
	next    slog.Handler
	secrets *atomic.Pointer[strings.Replacer]
}

func (r redactor) Enabled(ctx context.Context, l slog.Level) bool { return r.next.Enabled(ctx, l) }

func (r redactor) Handle(ctx context.Context, rec slog.Record) error {
	clean := slog.NewRecord(rec.Time, rec.Level, r.text(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(r.attr(a))
		return true
	})
	return r.next.Handle(ctx, clean) //nolint:wrapcheck // a handler in a chain
}

func (r redactor) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = r.attr(a)
	}
	return redactor{r.next.WithAttrs(clean), r.secrets}
}

func (r redactor) WithGroup(name string) slog.Handler {
	return redactor{r.next.WithGroup(name), r.secrets}
}

func (r redactor) text(s string) string { return r.secrets.Load().Replace(s) }

func (r redactor) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, r.text(v.String()))
	case slog.KindGroup:
		attrs := make([]slog.Attr, len(v.Group()))
		for i, g := range v.Group() {
			attrs[i] = r.attr(g)
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(attrs...)}
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			return slog.String(a.Key, r.text(err.Error()))
		}
		if text := fmt.Sprint(v.Any()); r.text(text) != text {
			return slog.String(a.Key, r.text(text))
		}
	default: // numbers, times and truths hold no secret
	}
	return slog.Attr{Key: a.Key, Value: v}
}
