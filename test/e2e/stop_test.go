package e2e_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/porttest"
)

// probes asks the health listener as an orchestrator does.
type probes struct {
	t       *testing.T
	address string
}

// health gives the stage's next daemons a health listener.
func (s *stage) health() (probes, string) {
	s.t.Helper()
	address := porttest.Reserve(s.t)
	return probes{s.t, address}, fmt.Sprintf("health: {listen: %q}\n", address)
}

// get returns the status, 0 while nobody answers, and the text.
func (p probes) get(path string) (int, string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }() // read to its end, or given up
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

// want fails the test when a probe has another status, or does not say the words. No answer in its time is none: it is asked again.
func (s *stage) want(p probes, path string, code int, words ...string) {
	s.t.Helper()
	var got int
	var text string
	s.until("an answer to "+path, func() (bool, string) {
		got, text = p.get(path)
		return got != 0, text
	})
	if got != code || !hasAll(text, words) {
		p.t.Errorf("%s is %d %q, want %d %q", path, got, text, code, words)
	}
}

func (s *stage) ready(p probes) {
	s.t.Helper()
	s.until("/readyz is 200", func() (bool, string) {
		code, text := p.get("/readyz")
		return code == http.StatusOK, text
	})
}

// While a drain waits for a handler streamd takes no traffic and must not be killed: /readyz is 503, /livez is 200.
func TestProbes_duringADrain(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	st := s.witness("orders", s.newBroker(), ", deadline: 1h")
	p, health := s.health()
	d := s.start(1, s.write(health))
	s.ready(p)
	s.want(p, "/livez", http.StatusOK)
	st.feed("hold a")
	s.until("the message is at its handler", func() (bool, string) { return len(inFlight(st.lines())) == 1, "" })
	d.signal(syscall.SIGTERM)
	s.until("/readyz is 503", func() (bool, string) {
		code, text := p.get("/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(text, "stopping"), text
	})
	s.want(p, "/livez", http.StatusOK)
	d.says(`"msg":"draining"`, `"in_flight":1`) // a second into the drain
	s.want(p, "/livez", http.StatusOK)
	s.want(p, "/readyz", http.StatusServiceUnavailable, "stopping")
	if len(inFlight(st.lines())) != 1 {
		t.Error("the drain was over: the test shows nothing")
	}
	st.open()
	d.ends()
	st.settles()
	st.once()
}

// A handler that fails for good after streamd was ready does not take readiness back: the other streams work, and a
// restart would help nobody. A start without it is not ready.
func TestProbes_afterAHandlerFailedForGood(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	b := s.newBroker()
	good, bad := s.witness("good", b, ""), s.witness("bad", b, "")
	binary := s.path("plugin")
	if err := os.Link(built.witness, binary); err != nil {
		t.Fatal(err)
	}
	bad.plugin = fmt.Sprintf("command: [%q]", binary)
	p, health := s.health()
	path := s.write(health)
	d := s.start(1, path)
	s.ready(p)
	process := d.process("bad", "is ready", func(p pluginProcess) bool { return p.PID > 0 })
	if err := os.Remove(binary); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(process.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.holds("bad", "plugin_down", binary+" does not exist")
	s.want(p, "/readyz", http.StatusOK)
	s.want(p, "/livez", http.StatusOK)
	good.goesOn("meanwhile")
	s.want(p, "/readyz", http.StatusOK)
	d.stop()
	d = s.start(2, path)
	s.until("/readyz names the stream", func() (bool, string) {
		code, text := p.get("/readyz")
		return code == http.StatusServiceUnavailable && hasAll(text, []string{"stream bad", binary + " does not exist"}), text
	})
	s.want(p, "/livez", http.StatusOK)
	d.stop()
}

// children are the processes that a process has started, with their command lines.
func children(t *testing.T, pid int) map[int]string {
	t.Helper()
	found := map[int]string{}
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // a thread that has ended
		}
		for word := range strings.FieldsSeq(string(text)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
			if err == nil {
				found[child] = strings.ReplaceAll(string(line), "\x00", " ")
			}
		}
	}
	return found
}

// A stop while streamd starts is a clean one: exit code 0, no process and no socket are left, and nobody waits for what
// was on its way.
func TestStop_whileAPluginStarts(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.env = []string{"XDG_RUNTIME_DIR=" + s.dir}
	s.faulty("hangs", s.newBroker(), "hangs") // it never sends its handshake
	d := s.run(1)
	var started map[int]string
	s.until("the plugin's process is there", func() (bool, string) {
		started = children(t, d.cmd.Process.Pid)
		for _, line := range started {
			if strings.HasSuffix(line, " hangs ") {
				return true, ""
			}
		}
		return false, fmt.Sprint(started)
	})
	begin := time.Now()
	d.signal(syscall.SIGTERM)
	d.ends()
	if strings.Contains(d.text(), `"msg":"started"`) {
		t.Error("it had started: the test shows nothing")
	}
	if took := time.Since(begin); took > 60*time.Second {
		t.Errorf("it took %s", took)
	}
	s.leavesNothing(started)
}

// The same while there is no broker to talk to.
func TestStop_whileThereIsNoBroker(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.env = []string{"XDG_RUNTIME_DIR=" + s.dir}
	st := s.witness("orders", s.newBroker(), "")
	address := st.broker.Address()
	if err := st.broker.Stop(); err != nil {
		t.Fatal(err)
	}
	d := s.run(1)
	d.says(address, "refused")
	var started map[int]string
	s.until("the plugin's process is there", func() (bool, string) {
		started = children(t, d.cmd.Process.Pid)
		return slices.ContainsFunc(slices.Collect(maps.Values(started)), func(line string) bool { return strings.HasPrefix(line, built.witness+" ") }), fmt.Sprint(started)
	})
	d.signal(syscall.SIGTERM)
	d.ends()
	if text := d.text(); strings.Contains(text, "not cleanly") || strings.Contains(text, "not confirmed") {
		t.Error("a stop with nothing at work is told as a failure")
	}
	s.leavesNothing(started)
}

func (s *stage) leavesNothing(started map[int]string) {
	s.t.Helper()
	for pid, line := range started {
		if now, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.ReplaceAll(string(now), "\x00", " ") == line {
			s.t.Errorf("process %d is left: %s", pid, line)
		}
	}
	base := filepath.Join(s.dir, fmt.Sprintf("streamd-%d", os.Getuid()))
	if _, err := os.Stat(base); err != nil {
		s.t.Errorf("the run directory is not where it was to be: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(base, "*")); err != nil || len(left) > 0 {
		s.t.Errorf("left in the run directory: %v, %v", left, err)
	}
}

// When all that was handled is stored, a broker that is gone takes nothing from anybody: the stop is clean and does not
// speak of offsets that are not confirmed.
func TestStop_brokerGoneAndNothingAtWork(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	st := s.witness("orders", s.newBroker(), "")
	d := s.run(1)
	st.goesOn("before")
	st.settles()
	d.confirmed()
	address := st.broker.Address()
	if err := st.broker.Stop(); err != nil {
		t.Fatal(err)
	}
	d.says("queue waits for its broker", address)
	lines := strings.Count(d.text(), "\n")
	d.signal(os.Interrupt)
	d.ends()
	after := strings.Join(strings.Split(d.text(), "\n")[lines:], "\n")
	for _, word := range []string{"not confirmed", "not cleanly", "delivered again"} {
		if strings.Contains(after, word) {
			t.Errorf("the log says %q", word)
		}
	}
	contains(t, after, `"msg":"stopped"`)
}
