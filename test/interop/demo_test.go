package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/test/interop/cluster"
)

// TestDemo runs what `make run-real` runs: the demo of `make run`, which internal/demo tests, on a real RocketMQ. It has to
// show a rebalance, a retry that is handled later, and a dead letter with its trace; to lose nothing; and to leave no process
// and no file behind.
func TestDemo(t *testing.T) {
	bin := filepath.Join(shared.dir, "demo-bin")
	if err := os.MkdirAll(filepath.Join(bin, "plugins"), 0o750); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		built(t, shared.streamd): "streamd",
		built(t, binary(bin, "plugins/orders", "../../plugins/orders")): "plugins/orders",
	} {
		if to := filepath.Join(bin, to); from != to {
			if err := os.Symlink(from, to); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := cluster.Lib(t.Context(), cluster.Main); err != nil { // what it fetches takes longer than what is to be seen
		t.Fatal(err)
	}
	temp := t.TempDir()
	cmd := exec.Command(built(t, binary(bin, "demo", "./cmd/demo")), "-bin", bin, "-rate", "50") // ended below; a slow machine has to keep up
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	demo, err := cluster.Start("demo", cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(demo.Kill)
	shows := func(what, pattern string) {
		t.Helper()
		re := regexp.MustCompile(pattern)
		until(t, 4*time.Minute, "the demo shows "+what, func() (bool, string) {
			text := strings.Join(demo.Lines(), "\n")
			return re.MatchString(text), text
		})
	}
	shows("the broker's address", `broker +RocketMQ at 127\.0\.0\.1:\d+`)
	shows("a rebalance", `member +m2 joined: rebalance, 4 queues moved`)
	shows("a retry", `retry +A-\d+ attempt 1 at m\d "db timeout"`)
	shows("a retry that is handled", `handled A-\d+ attempt 2`)
	shows("a dead letter", `dead +A-\d+ attempt 3 "no such customer" → trace [0-9a-f]{32}`)
	shows("both members at work", `(?s) m1 +Orders .* m2 +Orders `)
	if err := demo.Stop(4 * time.Minute); err != nil {
		t.Errorf("the demo ended with %v", err)
	}
	shows("a clean end", `drained \d+ in flight in .* · offsets confirmed 8/8 · exit 0`)
	shows("no loss", `sent [1-9][\d,]* +handled [1-9][\d,]* .* lost 0 +duplicates 0`)
	text := strings.Join(demo.Lines(), "\n")
	until(t, time.Minute, "no process of the demo's", func() (bool, string) { // one that was killed ends a moment later
		left := processesWith(t, "TMPDIR="+temp)
		return len(left) == 0, fmt.Sprintf("the demo left processes behind: %q", left)
	})
	left, err := filepath.Glob(filepath.Join(temp, "streamd-*", "*")) // streamd's own folder for sockets stays, empty
	if demos, _ := filepath.Glob(filepath.Join(temp, "streamd-demo-*")); err != nil || len(left)+len(demos) > 0 {
		t.Errorf("the demo left %v behind: %v", append(left, demos...), err)
	}
	if t.Failed() {
		t.Log(text)
	}
}

// processesWith lists the processes that have a variable in their environment: everything a process starts inherits it.
func processesWith(t *testing.T, variable string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(files) == 0 {
		t.Fatalf("reading /proc: %v", err)
	}
	var found []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil || !strings.Contains("\x00"+string(text), "\x00"+variable+"\x00") {
			continue // gone, or not ours to read
		}
		name, err := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		if err == nil {
			found = append(found, strings.ReplaceAll(string(name), "\x00", " "))
		}
	}
	return found
}
