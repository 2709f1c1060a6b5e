package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamd/streamd/test/interop/cluster"
)

// TestInit_fromGroup writes a config from a group with a live Java member; streamd runs from it, with
// a handler in the stand-in's place, and shares the queues with the Java member. Then from the same group with nobody online.
func TestInit_fromGroup(t *testing.T) {
	p := mainCluster(t)
	topic, group := p.topic(t, "Initiated", 4), "initiated"
	dir := t.TempDir()
	java := p.javaReady(t, "Member", group, topic, filepath.Join(dir, "ledger"), "queue")
	p.settled(t, group, topic, 1, 4)

	file := filepath.Join(dir, "streamd.yaml")
	said := p.command(t, "init", "--from-group", group, "-n", p.Addr, "--file", file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"group: " + group, "- topic: " + topic, "model: clustering", "order: queue", "start_from: first", "{strategy: averagely}", "concurrency: 20",
		"deadline: 15m", "messages: 1000", "span: 2000", "max: 32", "bytes: 256KiB", "on_exhausted: block", "1 × JAVA V5_3_3", "retryQueueNums 1",
	} {
		if !strings.Contains(strings.ReplaceAll(string(text), "\n# ", " "), want) {
			t.Errorf("the config lacks %q", want)
		}
	}
	if strings.Contains(said, "look:") || t.Failed() {
		t.Errorf("%s\n%s", said, text)
	}
	p.command(t, "validate", "-c", file)

	ready := strings.ReplaceAll(string(text), "./my-handler", built(t, shared.ledger))
	ready = strings.ReplaceAll(ready, "# config: {}", fmt.Sprintf("config: {file: %q}", filepath.Join(dir, "ledger")))
	ready = strings.ReplaceAll(ready, "state_dir: ./state", fmt.Sprintf("state_dir: %q\nadmin: {listen: \"127.0.0.1:0\"}\nlog: {format: json}", filepath.Join(dir, "state")))
	if err := os.WriteFile(file, []byte(ready), 0o600); err != nil {
		t.Fatal(err)
	}
	process, err := cluster.Start("streamd "+group, exec.Command(built(t, shared.streamd), "run", "-c", file)) // ended by the test
	if err != nil {
		t.Fatal(err)
	}
	m := &member{Process: process, place: p, config: file}
	t.Cleanup(func() {
		m.Kill()
		if t.Failed() {
			m.show(t)
		}
	})
	m.ready(t)
	p.settled(t, group, topic, 2, 4)
	m.stop(t)
	if err := java.Write("leave"); err != nil {
		t.Fatal(err)
	}
	<-java.Done()

	offline := p.command(t, "init", "--from-group", group, "-n", p.Addr)
	for _, want := range []string{"no member is online", "- topic: " + topic, "the group has offsets in it", "max_retries: 16"} {
		if !strings.Contains(offline, want) {
			t.Errorf("with nobody online the config lacks %q:\n%s", want, offline)
		}
	}
}

// command runs streamd, which must succeed, and returns what it said on both streams.
func (p *place) command(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), built(t, shared.streamd), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("streamd %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
