package lifecycle

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/streamd/streamd/internal/exitcode"
)

// Run does work that can be stopped, and returns its error. The first signal ends the work's context, and Run waits for it
// to end; a second one is an error at once, with its exit code, and the work is left to the end of the process.
func Run(ctx context.Context, signals <-chan os.Signal, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	var first os.Signal
	var asked Stop
	for {
		select {
		case err := <-done:
			return err
		case s := <-signals:
			if first == nil {
				first, asked = s, Begin(s, time.Now())
				cancel()
				continue
			}
			if number, ok := asked.Second(s, time.Now()); ok {
				return exitcode.With(exitcode.Signaled(int(number)), fmt.Errorf("stopped at once by a second signal (%s)", s))
			}
		}
	}
}
