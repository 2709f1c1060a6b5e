package tutorial

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/porttest"
)

// patience bounds every wait.
const patience = 8 * time.Minute

// terminals are the reader's: one for commands, and one where streamd runs.
type terminals struct {
	t       *testing.T
	state   string // a script that brings back folder and environment
	rewrite *strings.Replacer
	last    string // what the last commands have written
	asks    *block // these commands, when they only ask for a state that comes about
	streamd *running
}

// running is the streamd that the reader has left running.
type running struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	mu   sync.Mutex
	text []byte
}

// Write keeps what streamd writes.
func (r *running) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = append(r.text, b...)
	return len(b), nil
}

func (r *running) output() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.text)
}

func (r *running) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// TestTutorial runs the page.
func TestTutorial(t *testing.T) {
	r := newTerminals(t)
	counts := map[string]int{}
	for _, b := range readPage(t, "../../docs/tutorial.md") {
		counts[b.language]++
		t.Logf("line %d", b.line)
		switch b.language {
		case "go":
			r.save(b)
		case "sh":
			r.run(b)
		case "text":
			r.compare(b)
		default:
			t.Fatalf("line %d: what is a block of %q?", b.line, b.language)
		}
	}
	if counts["go"] < 3 || counts["sh"] < 7 || counts["text"] < 7 {
		t.Errorf("the page has fewer blocks than a tutorial needs: %v", counts)
	}
	if r.streamd == nil || !r.streamd.ended() || r.streamd.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("streamd was not ended, or not with 0:\n%s", r.output())
	}
}

// newTerminals opens a terminal in the repository. What the page builds goes into a folder of the test, the broker's port is
// a free one, and nothing is fetched.
func newTerminals(t *testing.T) *terminals {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	caches, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	dirs := strings.Fields(string(caches))
	address := porttest.Reserve(t) // the page's broker takes it minutes later
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	r := &terminals{t: t, state: filepath.Join(dir, "state.sh"), rewrite: strings.NewReplacer(
		"make build", "make build BIN="+bin, "$PWD/bin", bin, "127.0.0.1:9876", address)}
	script := fmt.Sprintf("export HOME=%q GOCACHE=%q GOMODCACHE=%q GOPROXY=off GOFLAGS= GOWORK=off NAMESRV_ADDR=\ncd %q\n", dir, dirs[0], dirs[1], root)
	if err := os.WriteFile(r.state, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// run types the commands of a block.
func (r *terminals) run(b block) {
	r.t.Helper()
	text := r.rewrite.Replace(b.text)
	if strings.HasPrefix(text, "streamd run ") {
		r.start(text)
		return
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	script := fmt.Sprintf("set -eu -o pipefail\n. %q\n%s\nexport -p > %q\nprintf 'cd %%q\\n' \"$PWD\" >> %q\n", r.state, text, r.state, r.state)
	out, err := exec.CommandContext(ctx, "bash", "-c", script).CombinedOutput()
	if err != nil {
		r.t.Fatalf("line %d: these commands do not work: %v\n%s\n%s\nstreamd wrote\n%s", b.line, err, text, out, r.output())
	}
	r.last, r.asks = string(out), nil
	if strings.HasPrefix(text, "streamd group status ") {
		r.asks = &b
	}
}

// start leaves streamd running.
func (r *terminals) start(command string) {
	r.t.Helper()
	s := &running{done: make(chan struct{})}
	s.cmd = exec.Command("bash", "-c", fmt.Sprintf(". %q\nexec %s", r.state, command))
	s.cmd.Stdout, s.cmd.Stderr = s, s
	if err := s.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	go func() {
		defer close(s.done)
		_ = s.cmd.Wait() // the test looks at the state
	}()
	r.t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it has ended, unless the test failed
		<-s.done
	})
	r.streamd, r.last, r.asks = s, "", nil
}

// save writes the file that the text before a block names.
func (r *terminals) save(b block) {
	r.t.Helper()
	names := regexp.MustCompile("`([a-z_]+\\.go)`").FindAllStringSubmatch(b.before, -1)
	if len(names) == 0 {
		r.t.Fatalf("line %d: nothing says where this file goes: %q", b.line, b.before)
	}
	r.run(block{line: b.line, text: fmt.Sprintf("cat > %s <<'END OF FILE'\n%sEND OF FILE\n", names[len(names)-1][1], b.text)})
}

// compare waits until what the page shows has been written, by the last commands or by streamd. A question is asked again until
// its answer is the page's, as a reader would who was too quick: what streamd has handled is committed a moment later.
func (r *terminals) compare(b block) {
	r.t.Helper()
	if r.streamd != nil && strings.Contains(b.before, "Press Ctrl-C") {
		if err := r.streamd.cmd.Process.Signal(syscall.SIGINT); err != nil {
			r.t.Fatal(err)
		}
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for line := range strings.Lines(r.rewrite.Replace(b.text)) {
		re := pattern(strings.TrimRight(line, "\n"))
		for {
			over := r.streamd == nil || r.streamd.ended() // before the look: nothing comes after it
			if re.MatchString(r.last) || re.MatchString(r.output()) {
				break
			}
			select {
			case <-tick.C:
				if r.asks != nil {
					r.run(*r.asks)
				}
			case <-late.C:
				over = true
			}
			if over {
				r.t.Fatalf("line %d: this does not show:\n%s\nthe commands wrote\n%s\nstreamd wrote\n%s", b.line, line, r.last, r.output())
			}
		}
	}
	if r.streamd != nil && strings.Contains(b.before, "Press Ctrl-C") {
		<-r.streamd.done
	}
}

func (r *terminals) output() string {
	if r.streamd == nil {
		return ""
	}
	return r.streamd.output()
}
