package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/streamd/streamd/internal/config"
)

const minimal = `
brokers: [{name: main, name_servers: ["127.0.0.1:9876"]}]
plugins: [{name: acme, command: [./acme]}]
handlers: [{name: billing}]
streams: [{name: orders, group: billing, subscribe: [{topic: Orders}]}]
`

// write makes a file in a fresh directory and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, opts config.Options) *config.Loaded {
	t.Helper()
	l, err := config.Load(opts)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return l
}

func TestMinimalFillsDefaults(t *testing.T) {
	c := load(t, config.Options{Paths: []string{write(t, "s.yaml", minimal)}}).Config
	want := config.Policies{
		Concurrency: 20, Deadline: time.Minute,
		Batch: config.Batch{Max: 32, Bytes: 256 << 10, Linger: time.Millisecond},
		Pull:  config.Pull{Max: 32, Bytes: 256 << 10}, Window: config.Window{Messages: 1000, Bytes: 16 << 20, Span: 2000, StreamBytes: 64 << 20},
		Retry: config.Retry{MaxRetries: 16, Delays: "broker", Backoff: config.Backoff{First: time.Second, Max: 30 * time.Second}}, HandlerDown: config.HandlerDown{Hold: time.Minute, Then: "leave"},
	}
	s := c.Streams[0]
	if d := cmp.Diff(want, s.Policies); d != "" {
		t.Errorf("policies differ from design.md 15 (-want +got):\n%s", d)
	}
	if s.Broker != "main" || s.Handler != "billing" || c.Handlers[0].Plugin != "acme" {
		t.Errorf("what has one answer is not filled in: broker %q, handler %q, plugin %q", s.Broker, s.Handler, c.Handlers[0].Plugin)
	}
	if s.StartFrom.Position != config.StartLast || s.Allocation.Strategy != "averagely" || s.Model != "clustering" {
		t.Errorf("stream = %+v", s)
	}
	if c.ShutdownTimeout != 25*time.Second || c.Admin.Listen != "127.0.0.1:8420" || c.Health.Listen != "" {
		t.Errorf("config = %+v", c)
	}
	if got := string(c.Handlers[0].Config.JSON()); got != "{}" {
		t.Errorf("an absent config is %s, want {}", got)
	}
}

func TestDefaultsSectionReachesStreams(t *testing.T) {
	path := write(t, "s.yaml", strings.Replace(minimal, "subscribe:", "batch: {max: 5}, subscribe:", 1)+
		"defaults: {deadline: 5s, batch: {max: 64, linger: 2ms}, concurrency: 3}\n")
	s := load(t, config.Options{Paths: []string{path}}).Config.Streams[0]
	if s.Deadline != 5*time.Second || s.Batch.Max != 5 || s.Batch.Linger != 2*time.Millisecond || s.Concurrency != 3 {
		t.Errorf("policies = %+v", s.Policies)
	}
}

// TestLayers holds one key in every layer and takes them away one by one.
func TestLayers(t *testing.T) {
	t.Setenv("STREAMD_SHUTDOWN_TIMEOUT", "3s")
	opts := config.Options{
		Paths: []string{write(t, "a.yaml", minimal+"shutdown_timeout: 5s\n"), write(t, "b.yaml", "shutdown_timeout: 4s\n")},
		Set:   []string{"shutdown_timeout=2s"},
		Flags: []config.Flag{{Key: "shutdown_timeout", Name: "--shutdown-timeout", Value: "1s"}},
	}
	steps := []struct {
		name string
		want time.Duration
		drop func()
	}{
		{"flag", time.Second, func() { opts.Flags = nil }},
		{"--set", 2 * time.Second, func() { opts.Set = nil }},
		{"environment", 3 * time.Second, func() { t.Setenv("STREAMD_SHUTDOWN_TIMEOUT", "") }},
		{"later file", 4 * time.Second, func() { opts.Paths = opts.Paths[:1] }},
		{"file", 5 * time.Second, func() { opts.Paths = []string{write(t, "c.yaml", minimal)} }},
		{"default", 25 * time.Second, func() {}},
	}
	for _, s := range steps {
		if got := load(t, opts).Config.ShutdownTimeout; got != s.want {
			t.Errorf("with %s on top: %v, want %v", s.name, got, s.want)
		}
		s.drop()
	}
}

func TestSetReachesIntoListsAndLeavesSiblings(t *testing.T) {
	path := write(t, "s.yaml", strings.Replace(minimal, "name: orders", "name: com.acme.orders, window: {span: 500, messages: 400}", 1))
	l := load(t, config.Options{Paths: []string{path}, Set: []string{
		"streams[com.acme.orders].window.span=600", "streams[com.acme.orders].batch.max=7",
		"handlers[billing].config.Currency=EUR", "plugins[acme].env.MixedCase=x", "log.level=debug",
	}})
	s := l.Config.Streams[0]
	if s.Window.Span != 600 || s.Window.Messages != 400 || s.Batch.Max != 7 || s.Batch.Bytes != 256<<10 {
		t.Errorf("stream = %+v", s.Policies)
	}
	if got := string(l.Config.Handlers[0].Config.JSON()); got != `{"Currency":"EUR"}` {
		t.Errorf("handler config = %s", got)
	}
	if l.Config.Plugins[0].Env["MixedCase"] != "x" || l.Config.Log != (config.Log{Level: "debug", Format: "auto"}) {
		t.Errorf("env = %v, log = %+v", l.Config.Plugins[0].Env, l.Config.Log)
	}
}

// TestPluginConfigAsWritten covers what viper and YAML would change: case, dots, big integers, timestamps.
func TestPluginConfigAsWritten(t *testing.T) {
	path := write(t, "s.yaml", strings.Replace(minimal, "[{name: billing}]", `
  - name: billing
    config:
      Cur.rency: EUR
      currency: {a.B: 1, A.b: 2}
      big: 12345678901234567890123
      exact: 0.10
      hex: 0x1F
      million: 1_000_000
      day: 2026-11-01
      at: 2026-11-01T10:00:00Z
      word: on
      nothing: null
      empty: {}
      list: [true, "1", 1.5e3]
`, 1))
	h := load(t, config.Options{Paths: []string{path}}).Config.Handlers[0]
	want := `{"Cur.rency":"EUR","at":"2026-11-01T10:00:00Z","big":12345678901234567890123,"currency":{"A.b":2,"a.B":1},` +
		`"day":"2026-11-01","empty":{},"exact":0.10,"hex":31,"list":[true,"1",1.5e3],"million":1000000,"nothing":null,"word":"on"}`
	if got := string(h.Config.JSON()); got != want {
		t.Errorf("JSON\n got %s\nwant %s", got, want)
	}
	for pointer, line := range map[string]int{"/Cur.rency": 7, "/currency/A.b": 8, "/list/2": 18, "/list/9": 18, "": 7} {
		if got := h.Config.Locate(pointer); got.Line != line || got.Source != path {
			t.Errorf("Locate(%q) = %v, want line %d", pointer, got, line)
		}
	}
}

func TestComponentSchema(t *testing.T) {
	path := write(t, "s.yaml", strings.Replace(minimal, "[{name: billing}]", "\n  - name: billing\n    config:\n      curency: EUR\n      limit: many\n", 1))
	h := load(t, config.Options{Paths: []string{path}}).Config.Handlers[0]
	got, err := h.Config.Check([]byte(`{"type":"object","additionalProperties":false,"required":["currency"],
		"properties":{"currency":{"type":"string"},"limit":{"type":"integer"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, p := range got {
		lines = append(lines, strings.TrimPrefix(p.String(), path))
	}
	want := []string{
		`:7:7: config lacks the key "currency"; write currency: …`,
		`:7:7: unknown key "curency"; try currency`,
		`:8:14: limit is string, not integer`,
	}
	if d := cmp.Diff(want, lines); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if _, err := h.Config.Check([]byte(`{"type": 5}`)); err == nil {
		t.Error("a broken schema was accepted")
	}
	if _, err := h.Config.Check([]byte(`{"$ref": "file:///etc/passwd"}`)); err == nil {
		t.Error("a schema could make streamd read a file")
	}
}

func TestComponentSchema_range(t *testing.T) {
	path := write(t, "s.yaml", strings.Replace(minimal, "[{name: billing}]", "[{name: billing, config: {least: -4, most: 0.75}}]", 1))
	h := load(t, config.Options{Paths: []string{path}}).Config.Handlers[0]
	got, err := h.Config.Check([]byte(`{"type":"object","properties":{"least":{"type":"integer","minimum":0},"most":{"type":"number","maximum":0.5}}}`))
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, p := range got {
		text += p.String() + "\n"
	}
	for _, want := range []string{": least: -4 is out of range; try 0 or more\n", ": most: 0.75 is out of range; try 0.5 or less\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestDirectoriesAndOverlay(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"10.yaml": minimal, "20.yml": "streams: [{name: refunds, group: refunds, subscribe: [{topic: Refunds}]}]\n",
		"README.md": "not: [yaml", ".hidden.yaml": "nor: this",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	prod := write(t, "prod.yaml", "streams: [{name: refunds, concurrency: 99}]\nbrokers: [{name: main, name_servers: [a:1, b:2]}]\n")
	c := load(t, config.Options{Paths: []string{dir}, Overlays: []string{prod}}).Config
	if len(c.Streams) != 2 || c.Streams[1].Group != "refunds" || c.Streams[1].Concurrency != 99 || c.Streams[0].Concurrency != 20 {
		t.Errorf("streams = %+v", c.Streams)
	}
	if d := cmp.Diff(config.NameServers{"a:1", "b:2"}, c.Brokers[0].NameServers); d != "" {
		t.Error(d)
	}
}

// TestOverlayTakesAway has an overlay that replaces an embedded broker by a cluster, and gives a key its default back.
func TestOverlayTakesAway(t *testing.T) {
	base := write(t, "base.yaml", strings.Replace(minimal, `name_servers: ["127.0.0.1:9876"]`, "embedded: {}", 1)+"shutdown_timeout: 1s\n")
	if c := load(t, config.Options{Paths: []string{base}}).Config; c.Brokers[0].Embedded == nil {
		t.Fatalf("the base has no embedded broker: %+v", c.Brokers)
	}
	prod := write(t, "prod.yaml", "brokers: [{name: main, name_servers: [a:1], embedded: null}]\nshutdown_timeout: null\nnot_there: null\n")
	c := load(t, config.Options{Paths: []string{base}, Overlays: []string{prod}}).Config
	if c.Brokers[0].Embedded != nil || len(c.Brokers[0].NameServers) != 1 || c.ShutdownTimeout != 25*time.Second {
		t.Errorf("brokers = %+v, shutdown_timeout %s", c.Brokers, c.ShutdownTimeout)
	}
}

func TestUnreadable(t *testing.T) {
	empty := t.TempDir()
	for _, path := range []string{filepath.Join(empty, "none.yaml"), empty} {
		_, err := config.Load(config.Options{Paths: []string{path}})
		var bad *config.UnreadableError
		if !errors.As(err, &bad) || bad.Path != path {
			t.Errorf("Load(%s) = %v, want an UnreadableError", path, err)
		}
	}
}

func TestNameServersFromEnvironment(t *testing.T) {
	t.Setenv("NAMESRV_ADDR", "ns1:9876;ns2:9876")
	without := strings.Join(strings.Split(minimal, "\n")[2:], "\n")
	c := load(t, config.Options{Paths: []string{write(t, "s.yaml", without)}}).Config
	if want := []config.Broker{{Name: "default", NameServers: config.NameServers{"ns1:9876", "ns2:9876"}}}; !reflect.DeepEqual(c.Unplaced().Brokers, want) {
		t.Errorf("brokers %+v, want %+v", c.Brokers, want)
	}
	c = load(t, config.Options{Paths: []string{write(t, "s.yaml", minimal)}}).Config
	if c.Brokers[0].NameServers[0] != "127.0.0.1:9876" {
		t.Errorf("the environment replaced what the file says: %v", c.Brokers)
	}
}

func TestAnchorsAndMergeKeys(t *testing.T) {
	text := `
brokers: [{name: main, name_servers: ["127.0.0.1:9876"]}]
plugins: [{name: acme, command: [./acme]}]
handlers: [{name: billing}]
streams:
  - &orders
    name: orders
    group: billing
    subscribe: [{topic: Orders}]
    batch: &batch {max: 7}
  - <<: *orders
    name: refunds
    group: refunds
  - {name: more, group: more, subscribe: [{topic: T}], batch: *batch}
`
	c := load(t, config.Options{Paths: []string{write(t, "s.yaml", text)}}).Config
	if len(c.Streams) != 3 || c.Streams[1].Subscribe[0].Topic != "Orders" || c.Streams[1].Group != "refunds" || c.Streams[2].Batch.Max != 7 {
		t.Errorf("streams = %+v", c.Streams)
	}
}

func TestAliasesCannotExplode(t *testing.T) {
	var b strings.Builder
	b.WriteString("a: &a [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 'b'; i < 'k'; i++ {
		b.WriteString(string(i) + ": &" + string(i) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(i-1)+", ", 10), ", ") + "]\n")
	}
	_, err := config.Load(config.Options{Paths: []string{write(t, "s.yaml", b.String())}})
	if err == nil || !strings.Contains(err.Error(), "aliases expand") {
		t.Errorf("Load = %v", err)
	}
}
