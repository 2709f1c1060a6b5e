package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/streamd/streamd/test/interop/cluster"
)

// member is a streamd process with one stream that ends in the bench plugin.
type member struct {
	*cluster.Process
	notes string // path: what the plugin notes
	state string
}

// setup says what a member does. Everything else is streamd's default.
type setup struct {
	bin          string // streamd
	group, topic string
	use          string // component of the plugin
	count        int
	border       string // further keys of the plugin, as in ", tls: off"
	stream       string // further keys of the stream, as in ", batch: {max: 256}"
	profile      string // folder
	notes        string // path; a new one when empty
	ledger       bool   // ends in the ledger plugin
}

const configText = `brokers: [{name: main, name_servers: [%q]}]
plugins: [{name: bench, command: [%q]%s}]
handlers: [{name: bench, plugin: bench, use: %s, config: {file: %q%s}}]
streams: [{name: bench, group: %s, subscribe: [{topic: %s}], start_from: first%s}]
state_dir: %q
admin: {listen: "127.0.0.1:0"}
log: {level: info, format: json}
`

func (h *house) member(ctx context.Context, p *place, s setup) (*member, error) {
	dir := filepath.Join(h.dir, h.name("member"))
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	m := &member{notes: s.notes, state: filepath.Join(dir, "state")}
	if m.notes == "" {
		m.notes = filepath.Join(dir, "notes")
	}
	plugin, more := h.plugin, fmt.Sprintf(", count: %d", s.count)
	if s.profile != "" {
		more += fmt.Sprintf(", profile: %q", filepath.Join(s.profile, "plugin.pprof"))
	}
	if s.ledger {
		plugin, more, s.use = h.ledger, "", "ledger"
	}
	text := fmt.Sprintf(configText, p.Addr, plugin, s.border, s.use, m.notes, more, s.group, s.topic, s.stream, m.state)
	config := filepath.Join(dir, "streamd.yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("writing the config: %w", err)
	}
	var err error
	if m.Process, err = cluster.Start("streamd", exec.Command(s.bin, "run", "-c", config)); err != nil { //nolint:noctx // ended by its owner
		return nil, err
	}
	if _, err := m.WaitLine(ctx, logged("ready")); err != nil {
		m.Kill()
		return nil, err
	}
	return m, nil
}

// logged accepts a log line by the start of its message.
func logged(msg string) func(string) bool {
	return func(line string) bool {
		var record struct {
			Msg string `json:"msg"`
		}
		return json.Unmarshal([]byte(line), &record) == nil && strings.HasPrefix(record.Msg, msg)
	}
}

// noted waits for a line of the plugin's notes that starts with word, and returns its other words.
func (m *member) noted(ctx context.Context, word string) ([]string, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(m.notes)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("reading the plugin's notes: %w", err)
		}
		for l := range strings.Lines(string(text)) {
			if f := strings.Fields(l); strings.HasSuffix(l, "\n") && len(f) > 0 && f[0] == word {
				return f[1:], nil
			}
		}
		select {
		case <-tick.C:
		case <-m.Done():
			return nil, fmt.Errorf("streamd ended before the plugin noted %q: %w\n%s", word, m.Err(), strings.Join(m.Lines(), "\n"))
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the plugin to note %q: %w\n%s", word, ctx.Err(), strings.Join(m.Lines(), "\n"))
		}
	}
}

// saveProfile stores a CPU profile of streamd over the next seconds.
func (m *member) saveProfile(ctx context.Context, length time.Duration, path string) error {
	addr, err := os.ReadFile(filepath.Join(m.state, "admin.addr"))
	if err != nil {
		return fmt.Errorf("reading where streamd listens: %w", err)
	}
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", strings.TrimSpace(string(addr)), int(length.Seconds()))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking for a profile: %w", err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("asking for a profile: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // only read
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	if err != nil {
		return fmt.Errorf("asking for a profile: %w", err)
	}
	return os.WriteFile(path, text, 0o600)
}
