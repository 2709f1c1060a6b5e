package serve

import (
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
)

// A host that died before the watch began has died too: what the plugin has for a parent by then is not its host.
func TestWatchParent(t *testing.T) {
	for name, parent := range map[string]func() func() int{
		"dead before": func() func() int { return func() int { return 1 } },
		"dies": func() func() int {
			calls := 0
			return func() int {
				if calls++; calls < 3 {
					return 77
				}
				return 1
			}
		},
	} {
		bubbletest.Run(t, func(t *testing.T) {
			gone := make(chan string, 1)
			go watchParent(t.Context(), 77, parent(), time.Second, gone)
			select {
			case <-gone:
			case <-time.After(time.Minute):
				t.Errorf("%s: not noticed", name)
			}
		})
	}
}
