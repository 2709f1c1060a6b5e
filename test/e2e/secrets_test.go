package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// planted are the secrets of TestSecrets, by where they stand in the config.
func planted() map[string]string {
	return map[string]string{
		"secret_key": "acl-secret-4711", "plugin env": "env-secret-4712", "handler config, by its schema": "tok<en>&\"4713\"", "admin.token": "admin-secret-4714",
	}
}

// collector takes spans over HTTP and keeps their bytes.
type collector struct {
	mu   sync.Mutex
	text strings.Builder
}

func (c *collector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender tries again
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.Write(text)
}

func (c *collector) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// TestSecrets plants a secret in each place that may hold one, has the plugin tell its own in every way it can, and looks
// for them in all that leaves the process: log at debug level, status, metrics, spans, failure records, printed configs,
// errors, and the stacks of a crash.
func TestSecrets(t *testing.T) {
	t.Parallel()
	s, spans := newStage(t), &collector{}
	server := httptest.NewServer(spans)
	t.Cleanup(server.Close)
	x := s.witness("leaky", s.newBroker(), "")
	s.save(s.path("token"), planted()["handler config, by its schema"]+"\n")
	s.save(s.path("mq"), planted()["secret_key"]+"\n")
	x.plugin += fmt.Sprintf(", env: {WITNESS_KEY: %q}", planted()["plugin env"])
	x.config = fmt.Sprintf("{file: %q, token: \"${file:%s}\"}", s.path("leaky.record"), s.path("token"))
	path := s.write(fmt.Sprintf("log: {level: debug, format: json}\ntelemetry: {traces: {exporter: otlp, protocol: http/protobuf, endpoint: %q, sample_ratio: 1}}\n", server.URL))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	config := strings.Replace(string(text), fmt.Sprintf("name_servers: %q", x.broker.Address()),
		fmt.Sprintf("name_servers: %q, access_key: app, secret_key: \"${file:%s}\"", x.broker.Address(), s.path("mq")), 1)
	s.save(path, strings.Replace(config, `admin: {listen: "127.0.0.1:0"`, fmt.Sprintf(`admin: {listen: "127.0.0.1:0", token: %q`, planted()["admin.token"]), 1))
	x.feed("leak 1", "spill 2", "ok 3")
	d := s.start(1, path)
	x.handles(x.bodies...)
	x.settles()
	d.says("logging in with")
	d.says("no session for")
	found := map[string]string{"metrics": d.fetch("/metrics"), "status": d.fetch("/api/v1/status")}
	contains(t, found["status"], `"leaky"`)
	for name, args := range map[string][]string{
		"validate": {"validate", "-c", path, "--print", "-o", "json"}, "config print": {"config", "print", "-c", path}, "group status": {"group", "status", x.group(), "-c", path, "-o", "json", "-v"},
	} {
		out, err := exec.CommandContext(within(t, patience), built.streamd, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		found[name] = string(out)
	}
	s.until("the failure record of the failed attempt", func() (bool, string) {
		found["failure records"] = ""
		for _, m := range x.broker.Messages("STREAMD_FAILURES") {
			found["failure records"] += string(m.Body)
		}
		return strings.Contains(found["failure records"], "cannot log in with"), found["failure records"]
	})
	s.until("the spans of the failed attempt", func() (bool, string) { return strings.Contains(spans.String(), "cannot log in with"), "" })
	found["spans"] = spans.String()
	d.signal(syscall.SIGABRT) // a crash: Go prints its stacks
	<-d.done
	found["log"] = d.text()
	contains(t, found["log"], "SIGABRT", "goroutine ")
	for what, text := range found {
		for where, secret := range planted() {
			escaped, err := json.Marshal(secret)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(text, secret) || strings.Contains(text, strings.Trim(string(escaped), `"`)) {
				t.Errorf("%s has the secret of %s", what, where)
			}
		}
	}
}

// fetch reads from the admin listener.
func (d *daemon) fetch(path string) (text string) {
	d.t.Helper()
	d.until("the answer to GET "+path, func() (bool, string) {
		addr, err := os.ReadFile(filepath.Join(d.state, "admin.addr"))
		if err != nil {
			return false, err.Error()
		}
		req, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, "http://"+strings.TrimSpace(string(addr))+path, nil)
		if err != nil {
			d.t.Fatal(err)
		}
		client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(req)
		if err != nil {
			return false, err.Error()
		}
		defer func() { _ = resp.Body.Close() }() // read to its end, or given up
		body, err := io.ReadAll(resp.Body)
		text = string(body)
		return err == nil && resp.StatusCode == http.StatusOK, resp.Status + " " + text
	})
	return text
}
