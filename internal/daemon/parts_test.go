package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/runtime"
)

func TestStateLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	first, err := lockState(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = lockState(dir)
	if exitcode.Of(err) != exitcode.Environment || !strings.Contains(err.Error(), "pid") || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second lock = %v (code %d)", err, exitcode.Of(err))
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := lockState(dir)
	if err != nil {
		t.Fatalf("after it was given back: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lockState(filepath.Join(file, "state")); exitcode.Of(err) != exitcode.Environment {
		t.Errorf("a file in the folder's place = %v", err)
	}
}

func TestListenerTakesTheNextFreePort(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := taken.Close(); err != nil {
			t.Error(err)
		}
	}()
	l, err := listenNear(t.Context(), taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if l.Addr().String() == taken.Addr().String() {
		t.Error("the taken address was given out again")
	}
	s := serveHTTP(l, http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	dir := t.TempDir()
	if err := recordAddress(dir, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "admin.addr"))
	if err != nil || strings.TrimSpace(string(text)) != l.Addr().String() {
		t.Errorf("admin.addr = %q, %v", text, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := listenNear(t.Context(), "192.0.2.1:80"); exitcode.Of(err) != exitcode.Environment {
		t.Errorf("an address of nobody = %v", err)
	}
}

func TestLogKeepsSecretsOut(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		l, err := newLogging(&out, config.Log{Level: "info", Format: format}, []string{"pa55word", "pa55"})
		if err != nil {
			t.Fatal(err)
		}
		log := l.Logger.With("dsn", "db://u:pa55word@h")
		log.Info("opening pa55word", "error", errors.New("refused pa55word"), slog.Group("g", "k", "pa55word", "n", 7), "list", []string{"pa55word"})
		log.Debug("unseen")
		if err := l.apply("debug", []string{"later"}); err != nil {
			t.Fatal(err)
		}
		log.WithGroup("g").Debug("seen", "token", "later")
		l.learn([]string{"later than that"}) // a schema's word
		log.Info("learned", "token", "later than that", "n", "than that")
		got := out.String()
		if strings.Contains(got, "pa55") || strings.Contains(got, "later") || strings.Contains(got, "unseen") {
			t.Errorf("%s: a secret is logged, or a line below the level:\n%s", format, got)
		}
		if !strings.Contains(got, "opening [redacted]") || !strings.Contains(got, "seen") || strings.Count(got, "\n") != 3 || strings.Count(got, "than that") != 1 {
			t.Errorf("%s: lines are missing:\n%s", format, got)
		}
		if format == "json" && !json.Valid([]byte(strings.SplitN(got, "\n", 2)[0])) {
			t.Errorf("no JSON: %s", got)
		}
	}
}

func TestLogTellsARepeatedErrorTenTimesAMinute(t *testing.T) {
	var out bytes.Buffer
	l, err := newLogging(&out, config.Log{Level: "info", Format: "json"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_700_000_000, 0)
	for range 50 {
		r := slog.NewRecord(at, slog.LevelError, "pulling", 0)
		r.AddAttrs(slog.Any("error", errors.New("refused")))
		if err := l.Logger.Handler().Handle(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), "pulling"); n != 10 {
		t.Errorf("told %d times within a minute, want 10", n)
	}
}

func TestLogForPeople(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(newPeopleHandler(&out, slog.LevelInfo)).With("stream", "orders")
	log.WithGroup("queue").Warn("held", "why", "plugin is down", "n", 3)
	got := out.String()[len("15:04:05.000 "):]
	if want := "WARN held  stream=orders  queue.why=\"plugin is down\"  queue.n=3\n"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// A stack stands below its line, indented; nothing in it can pass for a line of the log or speak to the terminal.
func TestStackForPeople(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(newPeopleHandler(&out, slog.LevelInfo)).With("first", "a\nb")
	log.Error("the handler panicked", "stack", "goroutine 1 [running]:\n\tmain.go:7\x1b[31m\n12:00:00.000 INFO fine\n", "panic", "boom")
	got := out.String()[len("15:04:05.000 "):]
	want := "ERROR the handler panicked  panic=boom\n    first:\n        a\n        b\n    stack:\n        goroutine 1 [running]:\n        \tmain.go:7\uFFFD[31m\n        12:00:00.000 INFO fine\n"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestClientID(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		id, err := clientID("pod-0", map[string]string{"zone": "a", "weight": "2"})
		if err != nil {
			t.Fatal(err)
		}
		m := allocate.ParseMember(id)
		if seen[id] || !strings.HasPrefix(id, "pod-0@") || m.Attributes["zone"] != "a" || m.Attributes["weight"] != "2" {
			t.Fatalf("id = %q, attributes %v", id, m.Attributes)
		}
		seen[id] = true
	}
	id, err := clientID("", nil)
	if err != nil || !strings.Contains(id, "@") || !strings.Contains(id, "#") {
		t.Errorf("id = %q, %v", id, err)
	}
}

func TestMemoryBudget(t *testing.T) {
	c := &config.Config{Plugins: []config.Plugin{{Instances: 2, Limits: config.Limits{Memory: 256 << 20}}, {Instances: 1}}}
	for limit, want := range map[int64]int64{0: runtime.DefaultMemory, 2 << 30: (2<<30 - 512<<20) / 100 * 40, 600 << 20: leastMemory} {
		if got := memoryBudget(c, limit); got != want {
			t.Errorf("memoryBudget(%d) = %d, want %d", limit, got, want)
		}
	}
	root := fstest.MapFS{
		"memory.max":         {Data: []byte("max\n")},
		"a/memory.max":       {Data: []byte("1000\n")},
		"a/b/memory.max":     {Data: []byte("5000\n")},
		"c/memory.max":       {Data: []byte("max\n")},
		"a/b/other":          {},
		"elsewhere/whatever": {},
	}
	for self, want := range map[string]int64{"0::/a/b\n": 1000, "0::/a\n": 1000, "0::/c\n": 0, "0::/\n": 0, "12:cpu:/x\n": 0, "0::/gone/away\n": 0} {
		if got := cgroupLimit(root, self); got != want {
			t.Errorf("cgroupLimit(%q) = %d, want %d", self, got, want)
		}
	}
}

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := config.Load(config.Options{Paths: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	return l.Config
}

const base = `
brokers: [{name: main, name_servers: ["127.0.0.1:9876"]}]
plugins: [{name: acme, command: [./acme], instances: 3, tls: off, limits: {memory: 64MiB}, env: {A: b}}]
handlers: [{name: billing, use: invoice, config: {a: 1}}]
streams:
  - name: orders
    group: billing
    subscribe: [{topic: Orders, tags: "a || b"}]
    start_from: {timestamp: 2026-11-01T00:00:00Z}
    batch: {linger: 0s}
    pull: {max: 1024, bytes: 2MiB}
    allocation: {plugin: acme, use: nearest, config: {zone: a}, allow_uncovered: true}
`

func TestTranslation(t *testing.T) {
	c := parse(t, base)
	s := streamConfigs(c)[0]
	if s.Batch.Linger >= 0 {
		t.Errorf("linger 0s became the default: %v", s.Batch.Linger)
	}
	if s.Pull.Messages != 1024 || s.Pull.Bytes != 2<<20 {
		t.Errorf("pull = %+v", s.Pull)
	}
	if s.Shards != 3 || s.HandlerVersion != "acme/invoice" || s.Subscriptions[0] != (runtime.Subscription{Topic: "Orders", Tags: "a || b"}) {
		t.Errorf("stream = %+v", s)
	}
	if s.StartFrom.First || !s.StartFrom.At.Equal(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)) || !s.AllowUncovered {
		t.Errorf("start = %+v", s.StartFrom)
	}
	if s.Strategy.Plugin != "acme" || s.Strategy.Use != "nearest" || string(s.Strategy.Config) != `{"zone":"a"}` || s.Strategy.Name != "" {
		t.Errorf("strategy = %+v", s.Strategy)
	}
	if s.Retry.MaxRetries != 16 || s.OnExhausted != runtime.DeadLetter || s.FailureTopic != "STREAMD_FAILURES" {
		t.Errorf("policies = %+v", s)
	}
	p := pluginSpec(&c.Plugins[0])
	if !p.TLSOff || p.Memory != 64<<20 || p.Instances != 3 || p.Env["A"] != "b" {
		t.Errorf("plugin = %+v", p)
	}
	if got := failureFile("/s")("a/b"); got != "/s/failures/a_b.jsonl" {
		t.Errorf("failure file = %s", got)
	}
}

func TestReloadTellsWhatDiffers(t *testing.T) {
	old := parse(t, base)
	if !sameConfig(old, parse(t, strings.ReplaceAll(base, "{a: 1}", "{a:   1}")+"# a comment\n")) {
		t.Error("a config that says the same counts as changed")
	}
	for _, change := range []string{"{a: 1}|{a: 2}", "zone: a|zone: b", "linger: 0s|linger: 2ms", "instances: 3|instances: 2", "A: b|A: c"} {
		from, to, _ := strings.Cut(change, "|")
		if sameConfig(old, parse(t, strings.ReplaceAll(base, from, to))) {
			t.Errorf("%s counts as the same", change)
		}
	}
	next := parse(t, strings.ReplaceAll(base, "127.0.0.1:9876", "other:9876")+
		"state_dir: x\nmember: m\nattributes: {a: b}\nadmin: {listen: ':1'}\nhealth: {listen: ':2'}\nlog: {format: json, level: debug}\ntelemetry: {service_name: x}\nshutdown_timeout: 1s\n")
	want := []string{"state_dir", "member", "attributes", "log.format", "admin.listen", "health.listen", "telemetry.service_name", "brokers[main].name_servers"}
	if got := needsRestart(old, next); !slices.Equal(got, want) {
		t.Errorf("needs a restart: %v, want %v", got, want)
	}
	if got := needsRestart(old, old); len(got) > 0 {
		t.Errorf("nothing changed and %v needs a restart", got)
	}
	deep := parse(t, base+"admin: {token: x}\ntelemetry: {traces: {sample_ratio: 1}}\n")
	if got := needsRestart(old, deep); !slices.Equal(got, []string{"admin.token", "telemetry.traces.sample_ratio"}) {
		t.Errorf("needs a restart: %v", got)
	}
}

// A start that fails gives everything back: the same process can try again.
func TestFailedStartReleasesEverything(t *testing.T) {
	t.Chdir(t.TempDir())
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := taken.Close(); err != nil {
			t.Error(err)
		}
	}()
	path := filepath.Join(t.TempDir(), "s.yaml")
	text := base + "admin: {listen: '127.0.0.1:0'}\nhealth: {listen: '" + taken.Addr().String() + "'}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		err := Run(t.Context(), Options{
			Load: func() (*config.Loaded, error) { return config.Load(config.Options{Paths: []string{path}}) },
			Log:  io.Discard, Executable: "/bin/false",
		})
		if exitcode.Of(err) != exitcode.Environment || !strings.Contains(err.Error(), "opening the health listener") {
			t.Fatalf("Run = %v", err)
		}
	}
}
