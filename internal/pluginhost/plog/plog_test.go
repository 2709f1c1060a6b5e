package plog_test

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/logtest"
	"github.com/streamd/streamd/internal/pluginhost/plog"
)

type line struct {
	text string
	cut  int
}

func readLines(t *testing.T, r io.Reader) []line {
	t.Helper()
	var got []line
	if err := plog.Lines(r, func(l []byte, cut int) { got = append(got, line{string(l), cut}) }); err != nil {
		t.Fatalf("reading lines: %v", err)
	}
	return got
}

func TestLines_cutsLongLinesAndReadsOn(t *testing.T) {
	t.Parallel()
	for _, size := range []int{plog.MaxLine - 1, plog.MaxLine, plog.MaxLine + 1, 70 << 10, 1 << 20} {
		got := readLines(t, strings.NewReader("before\r\n"+strings.Repeat("x", size)+"\n\nafter"))
		if len(got) != 4 || got[0] != (line{"before", 0}) || got[2].text != "" || got[3] != (line{"after", 0}) {
			t.Fatalf("size %d: got %d lines around the long one: %v", size, len(got), got[0])
		}
		if kept := len(got[1].text); kept != min(size, plog.MaxLine) || got[1].cut != size-kept {
			t.Errorf("size %d: kept %d, cut %d", size, kept, got[1].cut)
		}
	}
}

func TestLines_passesErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	var got []string
	err := plog.Lines(io.MultiReader(strings.NewReader("half a li"), errReader{broken}), func(l []byte, _ int) { got = append(got, string(l)) })
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	if len(got) != 1 || got[0] != "half a li" {
		t.Errorf("lines %q, want the half one", got)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func TestParse(t *testing.T) {
	t.Parallel()
	trace := strings.Repeat("ab", 16)
	for name, tc := range map[string]struct {
		line    string
		level   slog.Level
		message string
		trace   string
		attrs   int
		panics  bool
	}{
		"hclog":              {`{"@level":"warn","@message":"slow","@timestamp":"x","n":3}`, slog.LevelWarn, "slow", "", 1, false},
		"slog":               {`{"time":"x","level":"ERROR","msg":"no","trace_id":"` + trace + `"}`, slog.LevelError, "no", trace, 0, false},
		"numeric message":    {`{"@level":"info","@message":5}`, slog.LevelInfo, "5", "", 0, false},
		"object message":     {`{"@message":{"a":[1,null]}}`, slog.LevelInfo, `{"a":[1,null]}`, "", 0, false},
		"null message":       {`{"@message":null,"@level":7,"@timestamp":[]}`, slog.LevelInfo, "", "", 0, false},
		"big number is kept": {`{"msg":"m","id":12345678901234567890}`, slog.LevelInfo, "m", "", 1, false},
		"bad trace id":       {`{"msg":"m","trace_id":17}`, slog.LevelInfo, "m", "", 0, false},
		"bracket level":      {`[WARN]  disk`, slog.LevelWarn, "disk", "", 0, false},
		"bracket text":       {`[main] disk`, slog.LevelInfo, "[main] disk", "", 0, false},
		"plain":              {`hello`, slog.LevelInfo, "hello", "", 0, false},
		"panic":              {`panic: boom`, slog.LevelError, "panic: boom", "", 0, true},
		"fatal":              {`fatal error: concurrent map writes`, slog.LevelError, "fatal error: concurrent map writes", "", 0, true},
		"not quite JSON":     {`{"@message":`, slog.LevelInfo, `{"@message":`, "", 0, false},
		"two values":         {`{} {}`, slog.LevelInfo, `{} {}`, "", 0, false},
		"array":              {`[1,2]`, slog.LevelInfo, `[1,2]`, "", 0, false},
		"not UTF-8":          {"a\xffb", slog.LevelInfo, "a\uFFFDb", "", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := plog.Parse([]byte(tc.line))
			if e.Level != tc.level || e.Message != tc.message || e.TraceID != tc.trace || len(e.Attrs) != tc.attrs || e.Panic != tc.panics {
				t.Errorf("got %+v", e)
			}
		})
	}
}

func TestParse_takesTheSpanOfALine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"@message":"m","span_id":"00f067aa0ba902b7"}`: "00f067aa0ba902b7",
		`{"msg":"m","spanId":"00f067aa0ba902b7"}`:       "00f067aa0ba902b7",
		`{"msg":"m","span_id":"short"}`:                 "",
	} {
		if e := plog.Parse([]byte(line)); e.SpanID != want || len(e.Attrs) != 0 {
			t.Errorf("%s: %+v", line, e)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"@message":5}`, `{"@level":{},"@message":[],"@timestamp":0}`, "[ERROR] x", "panic: y", "\xff{", `{"a":` + strings.Repeat("[", 100)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e := plog.Parse(b)
		if len(e.Attrs) > 33 {
			t.Errorf("%d attributes", len(e.Attrs))
		}
	})
}

func TestPump_keepsLastWordsAndMarksPanics(t *testing.T) {
	t.Parallel()
	var out logtest.Log
	p := plog.NewPump(slog.New(slog.NewJSONHandler(&out, nil)), time.Now)
	text := "{\"@message\":5}\nstarting\npanic: boom\n\ngoroutine 1 [running]:\nmain.main()\n"
	if err := p.Stderr(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	if got := p.Tail().Account(3); got != "panic: boom\ngoroutine 1 [running]:\nmain.main()" {
		t.Errorf("account %q", got)
	}
	if got := out.Count(`"level":"ERROR"`); got != 3 {
		t.Errorf("%d error records, want the panic and its stack (3):\n%s", got, out.String())
	}
	if !out.Has(`"msg":"5"`) {
		t.Errorf("the numeric message is not shown:\n%s", out.String())
	}
}

func TestPump_samplesFloods(t *testing.T) {
	t.Parallel()
	var out logtest.Log
	now := time.Unix(0, 0)
	p := plog.NewPump(slog.New(slog.NewTextHandler(&out, nil)), func() time.Time { return now })
	const n = 100_000
	if err := p.Stderr(strings.NewReader(strings.Repeat("x\n", n))); err != nil {
		t.Fatal(err)
	}
	lines, dropped := p.Counts()
	shown := out.Count("msg=x")
	if lines != n || shown+int(dropped) != n {
		t.Errorf("read %d, dropped %d, shown %d: they must add up to %d", lines, dropped, shown, n)
	}
	if shown < plog.Burst || shown > plog.Burst+n/1000 {
		t.Errorf("%d lines shown, want the burst of %d and a sample", shown, plog.Burst)
	}
	if !out.Has("dropped_lines=") {
		t.Error("the loss of lines is not said")
	}
}

func TestTail_isBounded(t *testing.T) {
	t.Parallel()
	p := plog.NewPump(slog.New(slog.DiscardHandler), time.Now)
	for range 40 {
		if err := p.Stderr(strings.NewReader(strings.Repeat("y", 10_000) + "\nlast words\n")); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(p.Tail().String()); got > plog.TailSize {
		t.Errorf("%d bytes kept", got)
	}
	if got := p.Tail().Last(1); got != "last words" {
		t.Errorf("last line %q", got)
	}
}

// TestParse_keepsNumbers: logs are searched by them.
func TestParse_keepsNumbers(t *testing.T) {
	t.Parallel()
	e := plog.Parse([]byte(`{"@level":"info","@message":"m","attempt":2,"big":9007199254740993,"done":true,"list":[1],"ratio":0.5,"word":"2"}`))
	want := []slog.Attr{
		slog.Int64("attempt", 2), slog.Int64("big", 9007199254740993), slog.Bool("done", true),
		slog.String("list", "[1]"), slog.Float64("ratio", 0.5), slog.String("word", "2"),
	}
	if !slices.EqualFunc(e.Attrs, want, slog.Attr.Equal) {
		t.Errorf("attributes %v, want %v", e.Attrs, want)
	}
}
