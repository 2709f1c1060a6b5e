package e2e_test

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

// A plugin that does not start says why, in the log and in the status; its stream waits, and takes up work once it is
// mended; the stream of another plugin notices nothing.
func TestPlugin_doesNotStart(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	b := s.newBroker()
	good := s.witness("good", b, "")
	late := s.path("late-plugin")
	missing := s.witness("missing", b, "")
	missing.plugin = fmt.Sprintf("command: [%q]", late)
	text := s.path("notes.txt")
	s.save(text, "not a program\n")
	locked := s.stream("locked", b, fmt.Sprintf("command: [%q]", text), "")
	words := map[*stream][]string{
		missing:                                 {late + " does not exist", "install"},
		locked:                                  {"is not executable", "chmod +x"},
		s.faulty("magic", b, "wrong-magic"):     {"ended before its handshake", "plugin"},
		s.faulty("version", b, "wrong-version"): {"version 99", "speaks [1]", "upgrade"},
		s.faulty("exits", b, "exits"):           {"exit status 7", "no license found"},
		s.faulty("prints", b, "prints"):         {"before its handshake", "Welcome to acme!", "stderr"},
		s.faulty("hangs", b, "hangs"):           {"no handshake within", "start_timeout"},
	}
	for st := range words {
		st.feed(numbered("ok", 10)...)
	}
	d := s.run(1)
	good.goesOn("meanwhile")
	for st, want := range words {
		// A start on a busy machine may fail of its time before it fails of what is wrong.
		d.process(st.name, fmt.Sprintf("says %q of why it does not start", want), func(p pluginProcess) bool {
			return hasAll(p.LastError, append(want, "plugin "+st.name))
		})
		d.holds(st.name, append(want, "plugin_down")...)
		if n := st.committed(); n != 0 {
			t.Errorf("stream %s: committed %d without a handler", st.name, n)
		}
		st.unburned()
	}
	missing.why("plugin_down", late+" does not exist")
	d.says("missing", late+" does not exist")
	if d.told().Ready {
		t.Error("ready without handlers")
	}
	if err := os.Link(built.witness, late); err != nil {
		t.Fatal(err)
	}
	missing.handles(missing.bodies...)
	missing.settles()
	missing.once()
	good.goesOn("after")
	d.stop()
}

// A plugin that ends at its start has an open breaker. What it wanted is there, and a reload of the same config tries it at
// once: a try that waited for its time would find the breaker still open.
func TestPlugin_isTriedByAReload(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	bad := s.witness("bad", s.newBroker(), "")
	license, program := s.path("license"), s.path("licensed")
	script := fmt.Sprintf("#!/bin/sh\n[ -e %s ] || exit 9\nexec %s\n", license, built.witness)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	bad.plugin = fmt.Sprintf("command: [%q]", program)
	bad.feed(numbered("ok", 10)...)
	d := s.run(1)
	d.process("bad", "has an open breaker", func(p pluginProcess) bool { return p.State == "failed" && p.BreakerOpen })
	d.says(`"started"`) // before, a reload is refused
	s.save(license, "")
	d.signal(syscall.SIGHUP)
	d.says("reload: the config is unchanged")
	if p := d.process("bad", "is ready", func(p pluginProcess) bool { return p.State == "ready" }); p.BreakerOpen {
		t.Errorf("it was tried only when its time had come: %+v", p)
	}
	bad.handles(bad.bodies...)
	bad.settles()
	bad.once()
	d.stop()
}

// What a plugin writes on its pipes blocks nobody and breaks nothing.
func TestPlugin_writesWhatItWants(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	b := s.newBroker()
	var all []*stream
	for _, mode := range []string{"floods", "long-line", "bombs"} {
		st := s.faulty(mode, b, mode)
		st.feed(numbered("ok", 200)...)
		all = append(all, st)
	}
	good := s.witness("good", b, "")
	d := s.run(1)
	good.goesOn("meanwhile")
	for _, st := range all {
		st.settles()
		st.unburned()
		d.process(st.name, "lives on", func(p pluginProcess) bool { return p.State == "ready" && p.Restarts == 0 })
	}
	d.says("floods", "dropped_lines")
	d.says("long-line", "truncated_bytes")
	d.says("bombs", `"msg":"5"`)
	d.stop()
}

// A config that is broken never starts anything: exit code 2, and each fault with its place.
func TestRun_refusesABrokenConfig(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.witness("orders", s.newBroker(), ", concurency: 5")
	path := s.write("shutdown_timeout: 5\n")
	out, code := s.cli("run", "-c", path, "--state-dir", s.path("state"))
	if code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	contains(t, out, path+":8:", "concurency", "try concurrency", path+":10:19: ", "shutdown_timeout")
	if _, err := os.Stat(s.path("orders.record")); err == nil {
		t.Error("the plugin was started")
	}
}

// Whatever is wrong with the plugin, streamd stops within its time.
func TestStreamd_stopsWithoutPlugins(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	st := s.faulty("hangs", s.newBroker(), "hangs")
	st.feed("ok")
	d := s.start(1, s.write("shutdown_timeout: 25s\n"))
	d.holds("hangs", "plugin_down")
	begin := time.Now()
	d.stop()
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("took %s", took)
	}
	st.unburned()
}
