package daemon

import (
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/exitcode"
)

// Two equal signals at once, as timeout(1) sends them to a process and to its group, are one: the drain goes on. One that
// comes later ends at once.
func TestEchoOfTheFirstSignalDoesNotCutTheDrain(t *testing.T) {
	for name, c := range map[string]struct {
		again os.Signal
		after time.Duration
		code  int // 0 = the drain comes to its end
	}{
		"echo":        {syscall.SIGTERM, 10 * time.Millisecond, 0},
		"meant":       {syscall.SIGTERM, 400 * time.Millisecond, 143},
		"another one": {syscall.SIGINT, 10 * time.Millisecond, 130},
		"reload":      {syscall.SIGHUP, time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				signals := make(chan os.Signal, 4)
				d := &daemon{options: Options{Signals: signals}, log: slog.New(slog.DiscardHandler)}
				d.loaded.Store(&config.Loaded{Config: &config.Config{ShutdownTimeout: 25 * time.Second}})
				draining := make(chan error, 1) // what a stop waits for first
				go func() {
					time.AfterFunc(c.after, func() { signals <- c.again })
					end := time.NewTimer(5 * time.Second)
					<-end.C
					draining <- nil
				}()
				err := d.stop(syscall.SIGTERM, func(error) {}, draining, nil)
				if got := exitcode.Of(err); got != c.code {
					t.Errorf("exit code %d (%v), want %d", got, err, c.code)
				}
				wait := time.NewTimer(10 * time.Second)
				<-wait.C
			})
		})
	}
}
