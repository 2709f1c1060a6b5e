package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/config"
)

// A plugin that only divides queues is none that a handler could mean.
func TestHandlerPluginMayBeLeftOutBesideAStrategyPlugin(t *testing.T) {
	load := func(plugins string) (*config.Loaded, error) {
		path := filepath.Join(t.TempDir(), "s.yaml")
		text := "brokers: [{name: main, name_servers: ['a:1']}]\nplugins: [" + plugins + "]\nhandlers: [{name: billing, use: invoice}]\n" +
			"streams: [{name: orders, group: g, subscribe: [{topic: T}], allocation: {plugin: nearest}}]\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return config.Load(config.Options{Paths: []string{path}})
	}
	for plugins, want := range map[string]string{
		"{name: nearest, command: [./n]}, {name: acme, command: [./a]}": "acme",
		"{name: nearest, command: [./n]}":                               "nearest",
	} {
		l, err := load(plugins)
		if err != nil {
			t.Fatalf("%s: %v", plugins, err)
		}
		h := l.Config.Handlers[0]
		if h.Plugin != want {
			t.Errorf("plugin %q, want %q", h.Plugin, want)
		}
		if at := h.Config.Locate("/currency").String(); !strings.HasSuffix(at, "s.yaml:3:12") {
			t.Errorf("a config that was left out is at %s", at)
		}
		if at := h.Config.LocateEntry("use").String(); !strings.HasSuffix(at, "s.yaml:3:33") {
			t.Errorf("use is at %s", at)
		}
	}
	if _, err := load("{name: nearest, command: [./n]}, {name: acme, command: [./a]}, {name: other, command: [./o]}"); err == nil || !strings.Contains(err.Error(), `handler "billing" lacks the key "plugin"`) {
		t.Errorf("two could be meant: %v", err)
	}
}
