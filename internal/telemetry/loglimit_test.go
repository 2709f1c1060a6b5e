package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/logtest"
)

func TestLimitHandler(t *testing.T) {
	var out logtest.Log
	h := NewLimitHandler(slog.NewTextHandler(&out, nil))
	start := time.Unix(1_700_000_000, 0)
	tell := func(h slog.Handler, at time.Duration, level slog.Level, msg string, attrs ...slog.Attr) {
		t.Helper()
		r := slog.NewRecord(start.Add(at), level, msg, 0)
		r.AddAttrs(attrs...)
		if err := h.Handle(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	orders, refunds := h.WithAttrs([]slog.Attr{slog.String("stream", "orders")}), h.WithAttrs([]slog.Attr{slog.String("stream", "refunds")})
	refused := func(port string) slog.Attr {
		return slog.Any("error", errors.New("read from 127.0.0.1:"+port+": refused"))
	}
	for n := range 100 {
		at := time.Duration(n) * 100 * time.Millisecond
		tell(orders, at, slog.LevelWarn, "pulling", refused(strings.Repeat("7", n%4+1)), slog.Int("try", n), slog.Duration("after", at))
		tell(orders, at, slog.LevelInfo, "told always")
		tell(orders, at, slog.LevelWarn, "a plugin's line", slog.Group("fields", slog.Int("order", n)))
	}
	tell(refunds, time.Second, slog.LevelWarn, "pulling", refused("7"))                           // another stream
	tell(orders, time.Second, slog.LevelError, "pulling", refused("7"))                           // another level
	tell(orders, time.Second, slog.LevelWarn, "pulling", slog.Any("error", errors.New("closed"))) // another error
	for what, want := range map[string]int{"told always": 100, "a plugin's line": 100, "msg=pulling": perKind + 3, "held_back": 0} {
		if got := strings.Count(out.String(), what); got != want {
			t.Errorf("%q is told %d times, want %d", what, got, want)
		}
	}
	out.Reset()
	tell(orders, time.Minute, slog.LevelWarn, "pulling", refused("7"))
	if !strings.Contains(out.String(), "held_back=90") {
		t.Errorf("after a minute: %q, want it told with the 90 that were held back", out.String())
	}
}

const perKind = 10 // what design.md 15 promises, written here anew

func TestLimitHandler_doesNotGrowForEver(t *testing.T) {
	h := NewLimitHandler(slog.DiscardHandler)
	for n := range 3 * maxKeys {
		kind := strings.Repeat("x", n%100) + string(rune('a'+n%26)) + time.Duration(n).String()
		if err := h.Handle(t.Context(), slog.NewRecord(time.Now(), slog.LevelWarn, kind, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(h.limit.keys); n > maxKeys+1 {
		t.Errorf("%d kinds of lines are kept, at most %d may be", n, maxKeys+1)
	}
}
