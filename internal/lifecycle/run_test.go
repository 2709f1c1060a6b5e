package lifecycle_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/lifecycle"
)

var errGivenUp = errors.New("given up")

// The first signal ends the context, its echo nothing, and a second one the wait for work that does not end.
func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		again os.Signal
		after time.Duration
		code  int
	}{
		"echo":        {syscall.SIGTERM, 10 * time.Millisecond, exitcode.Runtime},
		"meant":       {syscall.SIGTERM, 400 * time.Millisecond, 143},
		"another one": {syscall.SIGINT, 10 * time.Millisecond, 130},
	} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				signals := make(chan os.Signal, 2)
				signals <- syscall.SIGTERM
				time.AfterFunc(c.after, func() { signals <- c.again })
				ended := make(chan struct{})
				begin := time.Now()
				err := lifecycle.Run(t.Context(), signals, func(ctx context.Context) error {
					defer close(ended)
					<-ctx.Done()
					if took := time.Since(begin); took > 0 {
						t.Errorf("the context ended after %s", took)
					}
					slow := time.NewTimer(time.Second)
					<-slow.C
					return errGivenUp
				})
				if got := exitcode.Of(err); got != c.code {
					t.Errorf("exit code %d (%v), want %d", got, err, c.code)
				}
				if c.code == exitcode.Runtime && !errors.Is(err, errGivenUp) {
					t.Errorf("%v, want the error of the work", err)
				}
				<-ended
			})
		})
	}
}
