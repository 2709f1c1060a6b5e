package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/streamd/streamd/internal/config"
)

func TestBroadcasting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.yaml")
	text := `brokers: [{name: m, name_servers: "a:1"}]
plugins: [{name: p, command: [x]}]
handlers: [{name: h}]
member: m1
streams:
  - {name: holds, group: g, subscribe: [{topic: T}], model: broadcasting, on_exhausted: block}
  - {name: skips, group: h, subscribe: [{topic: T}], model: broadcasting, on_exhausted: skip, accept_loss: true}
  - {name: divides, group: i, subscribe: [{topic: T}]}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := config.Load(config.Options{Paths: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, true, false} {
		if s := &l.Config.Streams[i]; s.Broadcasts() != want {
			t.Errorf("stream %s broadcasts: %t", s.Name, s.Broadcasts())
		}
	}
	if l.Config.StateEphemeral {
		t.Error("state_ephemeral is not false by default")
	}
}
