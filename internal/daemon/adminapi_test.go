package daemon

import (
	"errors"
	"io"
	"testing"

	"github.com/streamd/streamd/internal/config"
)

// Who asks for a reload is told what the log tells: that it is refused, and what is in force then.
func TestAskReload(t *testing.T) {
	logging, err := newLogging(io.Discard, config.Log{Level: "info", Format: "json"}, []string{"secret-of-ours"})
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{logging: logging, asks: make(chan chan<- error)}
	for _, c := range []struct {
		outcome error
		want    string
	}{
		{nil, ""},
		{errUnchanged, ""},
		{errBusy, errBusy.Error()},
		{errors.New("secret-of-ours is none"), "reload refused; the running config stays in force: [redacted] is none"},
	} {
		go func() { answer := <-d.asks; answer <- c.outcome }()
		err := d.askReload(t.Context())
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || err.Error() != c.want):
			t.Errorf("%v is told as %v, want %q", c.outcome, err, c.want)
		}
	}
}
