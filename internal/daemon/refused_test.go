package daemon

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/firstparty"
	"github.com/streamd/streamd/internal/logtest"
	"github.com/streamd/streamd/internal/pluginhost"
	"github.com/streamd/streamd/internal/uses"
	"github.com/streamd/streamd/runtime"
)

// underTest is a daemon that runs in a test, and the file of its config.
type underTest struct {
	*daemon
	t    *testing.T
	dir  string
	file string
	log  logtest.Log
}

// startDaemon starts one with the config that text makes of the folder of its files.
func startDaemon(t *testing.T, text func(dir string) string) *underTest {
	t.Helper()
	u := &underTest{t: t, dir: t.TempDir()}
	u.file = filepath.Join(u.dir, "s.yaml")
	renew(t, u.dir)
	put(t, filepath.Join(u.dir, "acl.yml"), oneAccount)
	put(t, u.file, text(u.dir))
	if err := os.WriteFile(filepath.Join(u.dir, "acme"), []byte("#!/bin/sh\necho out of luck >&2\nexit 3\n"), 0o700); err != nil { //nolint:gosec // it is executed
		t.Fatal(err)
	}
	load := func() (*config.Loaded, error) { return config.Load(config.Options{Paths: []string{u.file}}) }
	loaded, err := load()
	if err != nil {
		t.Fatal(err)
	}
	logging, err := newLogging(&u.log, config.Log{Level: "info", Format: "json"}, loaded.Secrets)
	if err != nil {
		t.Fatal(err)
	}
	u.daemon = &daemon{logging: logging, log: logging.Logger, options: Options{Load: load, Log: &u.log, Executable: "/bin/false"}}
	u.loaded.Store(loaded)
	if err := u.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	u.plugins.patience = 3 * time.Minute // a slow machine must not fail the test
	u.until("the first end of the plugin", func() bool {
		return slices.ContainsFunc(u.host.Status(), func(p pluginhost.PluginStatus) bool { return strings.Contains(p.Processes[0].LastError, "out of luck") })
	})
	t.Cleanup(func() {
		if err := u.release(t.Context()); err != nil { // the context of a test has ended here: what drains is cut
			t.Log(err)
		}
	})
	return u
}

// until waits for a state.
func (u *underTest) until(what string, ok func() bool) {
	u.t.Helper()
	late := time.NewTimer(3 * time.Minute)
	defer late.Stop()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !ok() {
		select {
		case <-ticker.C:
		case <-late.C:
			u.t.Fatalf("waited in vain for %s; in force:\n%s", what, u.inForce())
		}
	}
}

// inForce tells what a reload may change.
func (u *underTest) inForce() string {
	var out strings.Builder
	main := u.brokers.here["main"]
	fmt.Fprintln(&out, "loaded", u.loaded.Load() == nil, u.loaded.Load().Files, u.loaded.Load().Config.Streams[0].Concurrency)
	fmt.Fprintln(&out, "level", u.logging.level.Level())
	fmt.Fprintln(&out, "wanted", u.plugins.wanted.Load() == u.loaded.Load().Config)
	fmt.Fprintf(&out, "rules %p of %d, certificate %p\n", main.rules.Load(), main.rules.Load().Accounts(), main.tls.Load())
	fmt.Fprintln(&out, "topics of the config", main.config.Topics)
	for _, name := range main.Topics() {
		topic, _ := main.Topic(name)
		if !strings.HasPrefix(name, "%") { // those of groups come with heartbeats
			fmt.Fprintln(&out, "topic", name, topic.WriteQueues, topic.ReadQueues)
		}
	}
	fmt.Fprintln(&out, "brokers", slices.Sorted(maps.Keys(u.brokers.here)), slices.Sorted(maps.Keys(u.brokers.clients)), slices.Sorted(maps.Keys(u.brokers.trusts)))
	fmt.Fprintln(&out, "account", u.brokers.trusts["main"].account())
	for _, p := range u.host.Status() {
		fmt.Fprintln(&out, "plugin", p.Name, len(p.Processes))
	}
	gone, cancel := context.WithCancel(u.t.Context())
	cancel()
	_, err := u.host.OpenStrategy(gone, pluginhost.StrategyConfig{Instance: uses.StrategyInstance("refunds"), Name: "averagely"})
	fmt.Fprintln(&out, "strategy of refunds", err == nil || !strings.Contains(err.Error(), "there is no handler"))
	st := u.engine.Status()
	for i := range st.Streams {
		fmt.Fprintln(&out, "stream", st.Streams[i].Name, st.Streams[i].Handler)
	}
	return out.String()
}

const refusedBase = `
brokers:
  - name: main
    access_key: billing-app
    secret_key: secret-of-billing
    embedded: {listen: "127.0.0.1:0", data_dir: "", acl: DIR/acl.yml, tls: {cert: DIR/c.pem, key: DIR/c.key}, topics: [{name: Orders, queues: 2}]}
plugins: [{name: acme, command: [DIR/acme]}]
handlers: [{name: billing}]
streams: [{name: orders, group: billing, handler: billing, subscribe: [{topic: Orders}], concurrency: 5}]
state_dir: DIR/state
member: one
admin: {listen: ""}
`

// refusedNext changes all that a reload can, and is taken by everybody.
const refusedNext = `
brokers:
  - name: main
    access_key: operator
    secret_key: secret-of-op
    embedded: {listen: "127.0.0.1:0", data_dir: "", acl: DIR/acl.yml, tls: {cert: DIR/c.pem, key: DIR/c.key}, topics: [{name: Orders, queues: 4}, {name: Refunds}]}
  - {name: second, embedded: {listen: "127.0.0.1:0", data_dir: ""}}
plugins: [{name: acme, command: [DIR/acme]}]
handlers: [{name: billing}]
streams:
  - {name: orders, broker: main, group: billing, handler: billing, subscribe: [{topic: Orders}], concurrency: 6}
  - {name: refunds, broker: main, group: refunds, handler: billing, subscribe: [{topic: Refunds}]}
  - {name: others, broker: second, group: others, handler: billing, subscribe: [{topic: Others}]}
state_dir: DIR/state
member: one
admin: {listen: ""}
log: {level: debug}
`

// A reload that any part refuses changes nothing of the other parts, though the same file, and files that it names, change
// them all; and what was refused is taken once it is mended.
func TestRefusedReloadChangesNothing(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := taken.Close(); err != nil {
			t.Error(err)
		}
	}()
	filled := func(text string) func(string) string {
		return func(dir string) string { return strings.ReplaceAll(text, "DIR", dir) }
	}
	u := startDaemon(t, filled(refusedBase))
	before := u.inForce()
	for _, c := range []struct{ name, from, to, file, content, want string }{
		{name: "a file that is no config", from: "streams:\n", to: "streams: [\n", want: "s.yaml:"},
		{name: "a key that needs a restart", from: "admin:", to: "attributes: {a: b}\nadmin:", want: "attributes changed: that needs a restart"},
		{name: "certificates of a client", from: `  - {name: second, embedded: {listen: "127.0.0.1:0", data_dir: ""}}`, to: "  - {name: second, name_servers: ['mq:9876'], tls: {ca: DIR/none.pem}}", want: "none.pem"},
		{name: "access control", file: "acl.yml", content: "accounts: 5\n", want: "acl.yml:1:11"},
		{name: "the broker's certificate", file: "c.key", content: "no key", want: "s.yaml:6:"},
		{name: "a new broker", from: `second, embedded: {listen: "127.0.0.1:0"`, to: `second, embedded: {listen: "` + taken.Addr().String() + `"`, want: "s.yaml:7:"},
		{name: "a plugin", from: "acme, command: [DIR/acme]", to: "acme, command: [DIR/other]", want: "DIR/other"},
		{name: "a plugin that ends again and again", from: "handlers: [{name: billing}]", to: "handlers: [{name: billing}, {name: more}, {name: others}]", want: "plugin acme is not ready after 10ms: "},
		{name: "the engine", from: "group: others,", to: "group: others, model: broadcasting, on_exhausted: block,", file: "state/offsets", content: "a file in the folder's place", want: "s.yaml:14:12: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			good, err := os.ReadFile(filepath.Join(u.dir, c.file)) //nolint:gosec // a file of the test's own
			renew(t, u.dir)
			put(t, filepath.Join(u.dir, "acl.yml"), twoAccounts)
			if !strings.Contains(refusedNext, c.from) {
				t.Fatalf("there is no %q to change", c.from)
			}
			text := strings.Replace(refusedNext, c.from, c.to, 1)
			if strings.Contains(text, "broadcasting") {
				text += "state_ephemeral: true\n"
			}
			put(t, u.file, filled(text)(u.dir))
			if c.file != "" {
				put(t, filepath.Join(u.dir, c.file), c.content)
				defer func() {
					if os.IsNotExist(err) {
						err = os.Remove(filepath.Join(u.dir, c.file))
					} else if err == nil {
						put(t, filepath.Join(u.dir, c.file), string(good))
					}
				}()
			}
			again := strings.Contains(c.name, "again")
			if again {
				u.plugins.patience = 10 * time.Millisecond // it never comes
				defer func() { u.plugins.patience = 3 * time.Minute }()
			}
			got := u.reload(t.Context())
			if want := strings.ReplaceAll(c.want, "DIR", u.dir); got == nil || !strings.Contains(got.Error(), want) {
				t.Fatalf("the reload: %v, want it refused with %q", got, want)
			}
			t.Log(got)
			if strings.Contains(got.Error(), "context") || strings.Contains(got.Error(), "\n") {
				t.Errorf("the refusal tells of a context, or of one thing twice: %v", got)
			}
			if again && !strings.Contains(got.Error(), "(exit status 3); run "+filepath.Join(u.dir, "acme")+" by hand to see why; its last words: out of luck") {
				t.Errorf("the refusal does not tell what the plugin did: %v", got)
			}
			if now := u.inForce(); now != before {
				t.Errorf("in force after the refusal:\n%s\nbefore:\n%s", now, before)
			}
		})
	}
	put(t, u.file, filled(refusedNext)(u.dir))
	t.Run("the strategy of a stream that had started", func(t *testing.T) {
		next, err := u.options.Load()
		if err != nil {
			t.Fatal(err)
		}
		undo, err := u.plugins.change(t.Context(), next.Config, u.loaded.Load().Config)
		if err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := (strategies{u.host}).Open(gone, runtime.StrategySpec{Stream: "refunds", Plugin: firstparty.PluginName, Use: "averagely"}); err == nil {
			t.Error("a plugin that is none has opened a strategy")
		}
		if undo(t.Context()); u.inForce() != before {
			t.Errorf("in force after the refusal:\n%s\nbefore:\n%s", u.inForce(), before)
		}
	})
	renew(t, u.dir)
	put(t, filepath.Join(u.dir, "acl.yml"), twoAccounts)
	if err := u.reload(t.Context()); err != nil {
		t.Fatalf("what nobody refuses: %v", err)
	}
	now := u.inForce()
	for _, want := range []string{"of 2,", "topic Orders 4 4", "topic Refunds 8 8", "account operator", "level DEBUG", "[main second] [main second]", "stream refunds", "wanted true"} {
		if !strings.Contains(now, want) {
			t.Errorf("after a reload that nobody refused there is no %q in\n%s", want, now)
		}
	}
}
