package pluginhost_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/pluginhost"
)

// told wants an error that tells all of texts and nothing of contexts.
func told(t *testing.T, what string, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %q, want it to say %q", what, err, text)
		}
	}
	if strings.Contains(err.Error(), "context ") || strings.Contains(err.Error(), "rpc error") {
		t.Errorf("%s: %q speaks of what people do not know", what, err)
	}
}

// Whoever waited in vain for a plugin that ends again and again is told which, how long, and what it did; never that a
// context has ended.
func TestAWaitInVainTellsWhy(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	script := filepath.Join(t.TempDir(), "crash")
	writeProgram(t, script, []byte("#!/bin/sh\necho out of luck >&2\nexit 3\n"), 0o700)
	if err := b.host.Apply(t.Context(), pluginhost.PluginSpec{Name: "crash", Command: []string{script}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first end", func() bool { return b.host.Status()[0].Processes[0].LastError != "" })

	timed, cancel := context.WithTimeoutCause(t.Context(), time.Nanosecond, pluginhost.Waited(15*time.Second))
	defer cancel()
	bare, cancelBare := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancelBare()
	canceled, cancelNow := context.WithCancel(t.Context())
	cancelNow()
	stopped, stop := context.WithCancelCause(t.Context())
	stop(errors.New("streamd is stopping"))
	handler := pluginhost.HandlerSpec{Name: "h", Plugin: "crash"}
	for name, c := range map[string]struct {
		ctx  context.Context
		says string
	}{"timed": {timed, "after 15s"}, "bare": {bare, "in time"}, "canceled": {canceled, "given up"}, "stopped": {stopped, "(streamd is stopping)"}} {
		_, err := b.host.Describe(c.ctx, "crash")
		told(t, name+": describe", err, "crash", c.says, "exit status 3", "out of luck")
		if !errors.Is(err, context.Cause(c.ctx)) {
			t.Errorf("%s: %v is not the cause", name, err)
		}
		_, err = b.host.Check(c.ctx, handler)
		told(t, name+": check", err, "crash", c.says, "exit status 3", "out of luck")
		_, err = b.host.Configure(c.ctx, handler)
		told(t, name+": configure", err, "crash", c.says, "exit status 3", "out of luck")
		_, err = b.host.Open(c.ctx, laneSpec("h"))
		told(t, name+": open", err, "crash", c.says, "exit status 3", "out of luck")
		_, err = b.host.OpenStrategy(c.ctx, pluginhost.StrategyConfig{Instance: "h", Name: "crash/s"})
		told(t, name+": strategy", err, "crash", c.says, "exit status 3", "out of luck")
		b.host.Unconfigure("h")
	}
}

// A plugin that does not answer is told of in the same words.
func TestACallInVainTellsHowLong(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *pluginhost.Config) { c.Timing.Configure = 100 * time.Millisecond })
	if err := b.host.Apply(t.Context(), spec(t, "slow", "ok")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.host.Describe(within(t, patience), "slow"); err != nil {
		t.Fatal(err)
	}
	handler := pluginhost.HandlerSpec{Name: "h", Plugin: "slow", Use: "main", Config: []byte(`{"hang": true}`)}
	_, err := b.host.Configure(within(t, patience), handler)
	told(t, "the host's limit", err, "plugin slow", "no answer after 100ms")
	limited, cancel := context.WithTimeoutCause(t.Context(), time.Nanosecond, pluginhost.Waited(15*time.Second))
	defer cancel()
	_, err = b.host.Check(limited, handler)
	told(t, "the caller's limit", err, "plugin slow", "no answer after 15s")
}

// So is one that does not open a lane.
func TestALaneInVainTellsHowLong(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.apply(spec(t, "shut", "never-opens"))
	limited, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, pluginhost.Waited(15*time.Second))
	defer cancel()
	_, err := b.host.Open(limited, laneSpec("shut"))
	told(t, "open", err, "handler shut", "not ready after 15s", "no answer to Open after 15s")
}
