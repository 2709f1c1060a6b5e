package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// daemon is one running streamd.
type daemon struct {
	*stage
	cmd   *exec.Cmd
	log   string // path
	state string // path
	done  chan struct{}
	err   error
}

// run starts streamd on the stage's config; a second one has a state folder and a log of its own.
func (s *stage) run(n int) *daemon {
	s.t.Helper()
	return s.start(n, s.write(""))
}

func (s *stage) start(n int, config string) *daemon {
	s.t.Helper()
	d := &daemon{stage: s, log: s.path(fmt.Sprintf("streamd-%d.log", n)), state: s.path(fmt.Sprintf("state-%d", n)), done: make(chan struct{})}
	log, err := os.OpenFile(d.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(d.state, "admin.addr")); err != nil {
		s.t.Fatal(err)
	}
	d.cmd = exec.Command(built.streamd, "run", "-c", config, "--state-dir", d.state) // ended by stop, kill, or the clean-up
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.Env = append(append(os.Environ(), "NAMESRV_ADDR="), s.env...)
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := d.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		d.err = d.cmd.Wait()
		_ = log.Close() // written by the child only
		close(d.done)
	}()
	s.t.Cleanup(func() {
		d.kill()
		if s.t.Failed() {
			s.t.Logf("the end of %s:\n%s", d.log, d.tail(60))
		}
	})
	return d
}

// kill ends streamd as kill -9 does. Its plugins die with it.
func (d *daemon) kill() {
	_ = d.cmd.Process.Kill() // gone already is as good
	<-d.done
}

// stop drains and wants exit code 0.
func (d *daemon) stop() {
	d.t.Helper()
	d.signal(syscall.SIGTERM)
	d.ends()
}

// ends waits for the end, and wants exit code 0.
func (d *daemon) ends() {
	d.t.Helper()
	select {
	case <-d.done:
	case <-time.After(patience):
		d.t.Fatal("streamd did not stop")
	}
	if d.err != nil {
		d.t.Errorf("streamd: %v", d.err)
	}
}

func (d *daemon) signal(s os.Signal) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		d.t.Fatal(err)
	}
}

// reload writes the config anew and has it applied.
func (d *daemon) reload() {
	d.t.Helper()
	if line := d.reread(); !strings.Contains(line, "applied") {
		d.t.Fatalf("the reload was refused: %s", line)
	}
}

// refuses writes the config anew and wants it refused, with the words told once in the log and in the status.
func (d *daemon) refuses(words ...string) {
	d.t.Helper()
	line := d.reread()
	if !hasAll(line, append(words, "reload refused")) {
		d.t.Errorf("the log does not say %q: %s", words, line)
	}
	if st := d.told(); st.LastReload == nil || !hasAll(st.LastReload.Error, words) {
		d.t.Errorf("the status does not say %q: %+v", words, st.LastReload)
	}
}

// reread writes the config anew, has it read, and returns the log's line about it.
func (d *daemon) reread() string {
	d.t.Helper()
	d.says(`"msg":"started"`) // before, a reload is refused
	d.write("")
	before := strings.Count(d.text(), `"reload `)
	d.signal(syscall.SIGHUP)
	var line string
	d.until("the reload", func() (bool, string) {
		text := d.text()
		if strings.Count(text, `"reload `) == before {
			return false, ""
		}
		var whole bool
		line, _, whole = strings.Cut(text[strings.LastIndex(text, `"reload `):], "\n")
		return whole, line
	})
	return line
}

func (d *daemon) text() string {
	d.t.Helper()
	text, err := os.ReadFile(d.log)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

func (d *daemon) tail(n int) string {
	lines := strings.Split(d.text(), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// says waits until one line of the log has all the words.
func (d *daemon) says(words ...string) {
	d.t.Helper()
	d.until(fmt.Sprintf("the log says %q", words), func() (bool, string) {
		for line := range strings.Lines(d.text()) {
			if hasAll(line, words) {
				return true, ""
			}
		}
		return false, ""
	})
}

func hasAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// status is what these tests read of /api/v1/status.
type status struct {
	Ready      bool   `json:"ready"`
	NotReady   string `json:"not_ready"`
	LastReload *struct {
		Error string `json:"error"`
	} `json:"last_reload"`
	Streams []struct {
		Name     string            `json:"name"`
		Joined   bool              `json:"joined"`
		Holds    []hold            `json:"holds"`
		Counters map[string]uint64 `json:"counters"`
		Queues   []struct {
			Topic     string `json:"topic"`
			Committed int64  `json:"committed"`
			Safe      int64  `json:"safe"`
			InFlight  int    `json:"in_flight"`
			Hold      *hold  `json:"hold"`
		} `json:"queues"`
	} `json:"streams"`
	Plugins []struct {
		Name      string          `json:"name"`
		Processes []pluginProcess `json:"processes"`
		Handlers  []pluginHandler `json:"handlers"`
	} `json:"plugins"`
}

type hold struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

type pluginHandler struct {
	Name       string `json:"name"`
	Use        string `json:"use"`
	ConfigHash string `json:"config_hash"`
	Error      string `json:"error"`
}

type pluginProcess struct {
	State       string `json:"state"`
	PID         int    `json:"pid"`
	Generation  uint64 `json:"generation"`
	Solo        bool   `json:"solo"`
	Restarts    int    `json:"restarts"`
	BreakerOpen bool   `json:"breaker_open"`
	LastError   string `json:"last_error"`
	InFlight    int    `json:"in_flight"`
}

// status reads the admin API; false while streamd does not answer.
func (d *daemon) status() (st status, ok bool) {
	d.t.Helper()
	addr, err := os.ReadFile(filepath.Join(d.state, "admin.addr"))
	if err != nil {
		return st, false
	}
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, "http://"+strings.TrimSpace(string(addr))+"/api/v1/status", nil)
	if err != nil {
		d.t.Fatal(err)
	}
	client := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return st, false
	}
	defer func() { _ = resp.Body.Close() }() // read to its end, or given up
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return st, false
	}
	if err := json.Unmarshal(text, &st); err != nil {
		d.t.Fatalf("%v: %s", err, text)
	}
	return st, true
}

// told is the status of a streamd that runs: a request that a busy machine lets run out is made again.
func (d *daemon) told() (st status) {
	d.t.Helper()
	d.until("the status", func() (ok bool, state string) {
		st, ok = d.status()
		return ok, "no status"
	})
	return st
}

// confirmed waits until streamd knows that the broker has what it committed, which is later than the broker knows it.
func (d *daemon) confirmed() {
	d.t.Helper()
	d.until("all that was committed is confirmed", func() (bool, string) {
		st, ok := d.status()
		if !ok {
			return false, "no status"
		}
		seen := 0
		for _, s := range st.Streams {
			for _, q := range s.Queues {
				if q.Committed < 0 || q.Committed != q.Safe {
					return false, fmt.Sprintf("%+v", q)
				}
				seen++
			}
		}
		return seen > 0, fmt.Sprintf("%d queues", seen)
	})
}

// holds waits until the status gives a reason for what a stream, one of its queues, or the start waits for.
func (d *daemon) holds(stream string, words ...string) {
	d.t.Helper()
	d.until(fmt.Sprintf("the status of stream %s says %q", stream, words), func() (bool, string) {
		st, ok := d.status()
		if !ok {
			return false, "no status"
		}
		var all []string
		for _, s := range st.Streams {
			if s.Name != stream {
				continue
			}
			for _, h := range s.Holds {
				all = append(all, h.Kind+": "+h.Text)
			}
			for _, q := range s.Queues {
				if q.Hold != nil {
					all = append(all, q.Hold.Kind+": "+q.Hold.Text)
				}
			}
		}
		return slices.ContainsFunc(all, func(h string) bool { return hasAll(h, words) }), strings.Join(all, " | ")
	})
}

// process waits for the state of a plugin's first process.
func (d *daemon) process(plugin, what string, ok func(pluginProcess) bool) (p pluginProcess) {
	d.t.Helper()
	d.until("plugin "+plugin+" "+what, func() (bool, string) {
		st, _ := d.status()
		for _, pl := range st.Plugins {
			if pl.Name == plugin && len(pl.Processes) > 0 {
				p = pl.Processes[0]
				return ok(p), fmt.Sprintf("%+v", p)
			}
		}
		return false, "no status"
	})
	return p
}

// counter reads a counter of a stream.
func (d *daemon) counter(stream, name string) uint64 {
	d.t.Helper()
	st, _ := d.status()
	for _, s := range st.Streams {
		if s.Name == stream {
			return s.Counters[name]
		}
	}
	return 0
}

// groupStatus is what these tests read of `group status -o json`.
type groupStatus struct {
	Members []struct {
		ClientID string `json:"client_id"`
		Plugins  []struct {
			Name  string `json:"name"`
			PID   int    `json:"pid"`
			State string `json:"state"`
		} `json:"plugins"`
	} `json:"members"`
	Queues []queueStatus `json:"queues"`
}

type queueStatus struct {
	Topic    string   `json:"topic"`
	State    string   `json:"state"`
	Owners   []string `json:"owners"`
	Why      string   `json:"why"`
	InFlight int      `json:"in_flight"`
}

// groupStatusNow is nil while no broker knows the group; said is what the command printed.
func (s *stream) groupStatusNow() (g *groupStatus, said string) {
	s.t.Helper()
	out, code := s.cli("group", "status", s.group(), "-n", s.broker.Address(), "-o", "json")
	if code != 0 {
		return nil, fmt.Sprintf("exit code %d: %s", code, out)
	}
	if err := json.Unmarshal([]byte(out), &g); err != nil {
		s.t.Fatalf("group status: %v: %s", err, out)
	}
	return g, out
}

// pid waits until `group status -o json` shows the plugin's process.
func (s *stream) pid() (pid int) {
	s.t.Helper()
	s.until("group status shows the process of plugin "+s.name, func() (bool, string) {
		g, said := s.groupStatusNow()
		if g == nil {
			return false, said
		}
		for _, m := range g.Members {
			for _, p := range m.Plugins {
				if p.Name == s.name && p.PID > 0 {
					pid = p.PID
				}
			}
		}
		return pid > 0, said
	})
	return pid
}

// why waits until `group status` gives a reason for a queue of the stream.
func (s *stream) why(words ...string) {
	s.t.Helper()
	s.until(fmt.Sprintf("group status says %q", words), func() (bool, string) {
		g, said := s.groupStatusNow()
		if g == nil {
			return false, said
		}
		var all []string
		for _, q := range g.Queues {
			if q.Why != "" {
				all = append(all, q.Why)
			}
		}
		return slices.ContainsFunc(all, func(w string) bool { return hasAll(w, words) }), strings.Join(all, " | ")
	})
}

// cli runs a streamd command to its end.
func (s *stage) cli(args ...string) (out string, code int) {
	s.t.Helper()
	return cli(s.t, args...)
}

func cli(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	cmd := exec.CommandContext(within(t, patience), built.streamd, args...)
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	cmd.Env = append(os.Environ(), "NAMESRV_ADDR=")
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return both.String(), cmd.ProcessState.ExitCode()
}
