package telemetry

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

func spanContext(n byte) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{n}, SpanID: trace.SpanID{n}, TraceFlags: trace.FlagsSampled, Remote: true})
}

func TestAttempts_surviveARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, err := openAttempts(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"A", "B", "A"} {
		if err := a.put(id, spanContext(byte(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	// What a kill in the middle of a write leaves.
	f, err := os.OpenFile(filepath.Join(dir, "attempts"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("C 00-0af76519"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := openAttempts(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
	}()
	if sc, ok := b.last("A"); !ok || sc.SpanID() != (trace.SpanID{3}) {
		t.Errorf("A: %v %v, want its newest attempt", sc, ok)
	}
	if _, ok := b.last("C"); ok {
		t.Error("C was never written whole")
	}
}

func TestAttempts_areBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, err := openAttempts(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.close(); err != nil {
			t.Error(err)
		}
	}()
	a.maxSpans, a.maxSize = 100, 20_000
	for i := range 3007 {
		if err := a.put(fmt.Sprintf("7F00000100002A9F%016X", i), spanContext(1)); err != nil {
			t.Fatal(err)
		}
	}
	if len(a.spans) != a.maxSpans {
		t.Errorf("%d remembered, want %d", len(a.spans), a.maxSpans)
	}
	info, err := os.Stat(filepath.Join(dir, "attempts"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > int64(a.maxSize)+200 {
		t.Errorf("the file has %d bytes, the limit is %d", info.Size(), a.maxSize)
	}
}

func TestAttempts_folderIsAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openAttempts(path); err == nil {
		t.Error("a state folder that is a file was accepted")
	}
}
