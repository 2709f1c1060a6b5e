package lifecycle_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/lifecycle"
)

func TestSecondSignal(t *testing.T) {
	begin := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		first, again os.Signal
		after        time.Duration
		want         bool
	}{
		"echo":                 {syscall.SIGTERM, syscall.SIGTERM, 0, false},
		"late echo":            {syscall.SIGTERM, syscall.SIGTERM, 299 * time.Millisecond, false},
		"again":                {syscall.SIGTERM, syscall.SIGTERM, 300 * time.Millisecond, true},
		"another one at once":  {syscall.SIGTERM, syscall.SIGINT, 0, true},
		"echo of Ctrl-C":       {os.Interrupt, os.Interrupt, time.Millisecond, false},
		"Ctrl-C again":         {os.Interrupt, os.Interrupt, time.Second, true},
		"reload":               {syscall.SIGTERM, syscall.SIGHUP, time.Minute, false},
		"a clock that went by": {syscall.SIGTERM, syscall.SIGTERM, time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			number, got := lifecycle.Begin(c.first, begin).Second(c.again, begin.Add(c.after))
			if got != c.want || got && number != c.again {
				t.Errorf("Second = %v, %v, want %v", number, got, c.want)
			}
		})
	}
}
