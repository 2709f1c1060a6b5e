package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// divided gives a stream a strategy of the strategist plugin with a config.
func (s *stream) divided(config string) {
	s.plugin = fmt.Sprintf("command: [%q]}\n  - {name: strategist, command: [%q]", built.witness, built.strategist)
	s.extra = ", allocation: {plugin: strategist, use: forgets, config: " + config + "}"
}

// A strategy plugin's config is judged beforehand, as a handler's is: by validate, by plugin list, at the start.
func TestStrategyConfig_isJudgedBeforeItIsUsed(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	st := s.witness("orders", s.newBroker(), "")
	st.divided("{spoilt: x}")
	for config, words := range map[string][]string{
		"{spoilt: x}":      {"streamd.yaml:", "the allocation of stream orders (forgets of plugin strategist): ", `unknown key "spoilt"; try spoiled`, `lacks the key "spoiled"; write spoiled`},
		"{spoiled: never}": {"streamd.yaml:", "the allocation of stream orders (forgets of plugin strategist): spoiled: never is no file"},
	} {
		st.divided(config)
		path := s.write("")
		for _, args := range [][]string{
			{"validate", "-c", path, "--plugins"}, {"plugin", "list", "-c", path, "--check"}, {"run", "-c", path, "--state-dir", s.path("state")},
		} {
			out, code := s.cli(args...)
			if code != 2 {
				t.Errorf("%v: exit code %d, want 2", args, code)
			}
			contains(t, out, words...)
		}
		if out, code := s.cli("validate", "-c", path); code != 0 || !strings.Contains(out, "--plugins") {
			t.Errorf("validate without --plugins does not say what it did not ask: %d %s", code, out)
		}
	}
	st.divided(fmt.Sprintf("{spoiled: %q}", s.path("spoiled")))
	st.extra = strings.Replace(st.extra, "use: forgets", "use: forgetz", 1)
	if out, code := s.cli("validate", "-c", s.write(""), "--plugins"); code != 2 || !strings.Contains(out, `no component "forgetz"`) {
		t.Errorf("a component that is not there: %d %s", code, out)
	}
	if _, err := os.Stat(s.path("orders.record")); err == nil {
		t.Error("the handler was built")
	}
}

// After a refused reload everything is as it was, and the refusal is told once: whatever was wrong.
func TestReload_refusedLeavesNoTrace(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	st := s.witness("orders", s.newBroker(), "")
	good := fmt.Sprintf("{spoiled: %q}", s.path("spoiled"))
	st.divided(good)
	handler := st.config
	d := s.run(1)
	st.goesOn("before")
	before := d.handlers()
	if len(before) != 2 {
		t.Fatalf("handlers: %+v", before)
	}
	lines := strings.Count(d.text(), "\n")
	missing := filepath.Join(s.path("nowhere"), "record")
	for _, bad := range []struct {
		handler, strategy string
		words             []string
	}{
		{"{fil: x}", good, []string{"streamd.yaml:", "handler orders (plugin orders): ", "unknown key", "fil", "try file"}},
		{fmt.Sprintf("{file: %q}", missing), good, []string{"streamd.yaml:", "handler orders (plugin orders): file: open ", "no such file"}},
		{handler, "{spoilt: x}", []string{"streamd.yaml:", "the allocation of stream orders (forgets of plugin strategist)", "unknown key", "spoilt", "try spoiled"}},
		{handler, "{spoiled: never}", []string{"streamd.yaml:", "never is no file"}},
		// One is good, the other is not: neither is applied.
		{fmt.Sprintf("{file: %q}", s.path("other.record")), "{spoiled: never}", []string{"never is no file"}},
	} {
		st.config = bad.handler
		st.divided(bad.strategy)
		d.refuses(bad.words...)
		if diff := cmp.Diff(before, d.handlers()); diff != "" {
			t.Errorf("%s %s: the status has changed:\n%s", bad.handler, bad.strategy, diff)
		}
	}
	if _, err := os.Stat(s.path("other.record")); err == nil {
		t.Error("a handler was given a config of a reload that was refused")
	}
	st.goesOn("after")
	d.stop()
	after := strings.Join(strings.Split(d.text(), "\n")[lines:], "\n")
	for _, word := range []string{"not in force", "taking back", "its streams wait", "strategy_kept_share", "is not available"} {
		if strings.Contains(after, word) {
			t.Errorf("the log says %q", word)
		}
	}
	if n := strings.Count(after, "is no file"); n != 2 {
		t.Errorf("two refusals were told %d times", n)
	}
}

// handlers are the configs that plugins have, as the status tells them.
func (d *daemon) handlers() []pluginHandler {
	d.t.Helper()
	return d.handlersOf("orders", "strategist")
}

func (d *daemon) handlersOf(plugins ...string) (all []pluginHandler) {
	d.t.Helper()
	for _, p := range d.told().Plugins {
		if slices.Contains(plugins, p.Name) {
			all = append(all, p.Handlers...)
		}
	}
	return all
}
