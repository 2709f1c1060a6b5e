package daemon

import (
	"io"
	"testing"

	"github.com/streamd/streamd/internal/config"
)

// What a reload brings is secret before anything is done with it: plugins that it starts may log it long before it is in
// force, and a refusal may quote it.
func TestReloadKeepsItsSecretsOutOfTheLog(t *testing.T) {
	logging, err := newLogging(io.Discard, config.Log{Level: "info", Format: "json"}, []string{"first-token"})
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{logging: logging, log: logging.Logger, options: Options{Load: func() (*config.Loaded, error) {
		return &config.Loaded{Config: parse(t, base+"member: another\n"), Secrets: []string{"second-token"}}, nil
	}}}
	d.loaded.Store(&config.Loaded{Config: parse(t, base), Secrets: []string{"first-token"}})
	if err := d.reload(t.Context()); err == nil {
		t.Fatal("a config that needs a restart is taken")
	}
	if got := logging.clean("first-token second-token"); got != "[redacted] [redacted]" {
		t.Errorf("after a reload that was refused the log tells %q", got)
	}
}
