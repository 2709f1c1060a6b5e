package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/groupview"
	"github.com/streamd/streamd/test/interop/cluster"
	"github.com/streamd/streamd/test/interop/ledger"
)

// member is a streamd process with one stream that ends in the ledger plugin.
type member struct {
	*cluster.Process
	place  *place
	config string // path
	ledger string // path
	admin  string // host:port
}

// stream says what a member does.
type stream struct {
	group, topic string // the topic with further keys of its subscription, as in T, tags: a
	from         string // where a new group starts; the first message when empty
	ledger       string // path; a new one when empty
	keys         string // further keys of the stream, YAML in one line each
	handler      string // further keys of the ledger's config, as in {a: b}
	broker       string // further keys of the broker, as in {a: b}
	env          []string
}

const configText = `
brokers:
  - {name: main, name_servers: [%q]%s}
plugins:
  - {name: ledger, command: [%q]}
handlers:
  - {name: ledger, plugin: ledger, config: {file: %q%s}}
streams:
  - name: interop
    group: %s
    subscribe: [{topic: %s}]
    start_from: first
%s
state_dir: %q
admin: {listen: "127.0.0.1:0"}
log: {level: debug, format: json}
`

// streamd starts a member; it ends with the test.
func (p *place) streamd(t *testing.T, s stream) *member {
	t.Helper()
	m := p.launch(t, s)
	m.admin = fmt.Sprint(m.logged(t, "started")["admin"])
	return m
}

// launch is streamd for a member that may not start.
func (p *place) launch(t *testing.T, s stream) *member {
	t.Helper()
	dir := t.TempDir()
	if s.ledger == "" {
		s.ledger = filepath.Join(dir, "ledger")
	}
	var keys strings.Builder
	for k := range strings.Lines(s.keys) {
		keys.WriteString("    " + strings.TrimSpace(k) + "\n")
	}
	if s.handler != "" {
		s.handler = ", " + s.handler
	}
	if s.broker != "" {
		s.broker = ", " + s.broker
	}
	text := fmt.Sprintf(configText, p.Addr, s.broker, built(t, shared.ledger), s.ledger, s.handler, s.group, s.topic, keys.String(), filepath.Join(dir, "state"))
	if s.from != "" {
		text = strings.Replace(text, "start_from: first", "start_from: "+s.from, 1)
	}
	m := &member{place: p, config: filepath.Join(dir, "streamd.yaml"), ledger: s.ledger}
	if err := os.WriteFile(m.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(built(t, shared.streamd), "run", "-c", m.config) // ended by the test
	cmd.Env = append(os.Environ(), s.env...)
	var err error
	if m.Process, err = cluster.Start("streamd "+s.group, cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Kill()
		if t.Failed() {
			m.show(t)
		}
	})
	return m
}

// show prints what a member logged, for a test that failed.
func (m *member) show(t *testing.T) {
	t.Helper()
	lines := m.Lines()
	t.Logf("%s logged %d lines, the last ones:\n%s", m.Name, len(lines), strings.Join(lines[max(0, len(lines)-60):], "\n"))
}

// logged waits for a log record by the start of its message.
func (m *member) logged(t *testing.T, msg string) map[string]any {
	t.Helper()
	var record map[string]any
	waitLine(t, m.Process, func(l string) bool {
		record = nil
		return json.Unmarshal([]byte(l), &record) == nil && strings.HasPrefix(fmt.Sprint(record["msg"]), msg)
	})
	return record
}

func (m *member) ready(t *testing.T) *member {
	t.Helper()
	m.logged(t, "ready")
	return m
}

// stop ends a member by SIGTERM; it must end cleanly.
func (m *member) stop(t *testing.T) {
	t.Helper()
	if err := m.Stop(patience); err != nil {
		t.Errorf("stopping %s: %v", m.Name, err)
	}
}

// kill ends a member as kill -9 does; its plugins must end by themselves.
func (m *member) kill(t *testing.T) {
	t.Helper()
	if err := m.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-m.Done()
}

// get asks the admin listener.
func (m *member) get(ctx context.Context, path string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.admin+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", path, resp.Status, text)
	}
	return string(text), err
}

// status runs `streamd group status -o json`.
func (p *place) status(t *testing.T, group string) (groupview.Group, error) {
	t.Helper()
	var g groupview.Group
	cmd := exec.CommandContext(t.Context(), built(t, shared.streamd), "group", "status", group, "-n", p.Addr, "-o", "json")
	out, err := cmd.Output()
	if err != nil {
		return g, fmt.Errorf("group status: %w: %s", err, out)
	}
	return g, json.Unmarshal(out, &g)
}

// settled waits until the group has as many members, and each of its topic's queues one owner, none of them in motion.
func (p *place) settled(t *testing.T, group, topic string, members, queues int) groupview.Group {
	t.Helper()
	var g groupview.Group
	until(t, 90*time.Second, fmt.Sprintf("%d members that share %d queues", members, queues), func() (bool, string) {
		var err error
		if g, err = p.status(t, group); err != nil {
			return false, err.Error()
		}
		owners, owned := map[string]int{}, 0
		for _, q := range g.Queues {
			if q.Topic == topic && len(q.Owners) == 1 && (q.State == groupview.StateActive || q.State == groupview.StateIdle) {
				owners[q.Owners[0]]++
				owned++
			}
		}
		return len(g.Members) == members && owned == queues && len(owners) == min(members, queues), asJSON(g)
	})
	return g
}

// handled waits until the ledger has n messages that were acknowledged, whatever else is there.
func (m *member) handled(t *testing.T, n int, limit time.Duration) []ledger.Entry {
	t.Helper()
	entries, err := ledger.Wait(within(t, max(limit, patience)), m.ledger, func(e []ledger.Entry) bool { return len(ledger.Handled(e)) >= n })
	if err != nil {
		t.Fatalf("%v; %d handled of %d", err, len(ledger.Handled(entries)), n)
	}
	return entries
}
