package bubbletest_test

import (
	"sync"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
)

// TestRun_survivesTimersOfOneInstant lets many goroutines look at timers whose time has come while the clock fires others:
// on several processors the race detector's own state breaks within a fraction of a second.
func TestRun_survivesTimersOfOneInstant(t *testing.T) {
	t.Parallel()
	for range 50 {
		bubbletest.Run(t, func(*testing.T) {
			var members sync.WaitGroup
			stop := make(chan struct{})
			for range 8 {
				members.Go(func() { look(stop) })
			}
			for range 30 {
				for range 30 {
					time.AfterFunc(time.Millisecond, func() {})
				}
				<-time.After(time.Millisecond)
			}
			close(stop)
			members.Wait()
			<-time.After(10 * time.Millisecond)
		})
	}
}

func look(stop <-chan struct{}) {
	wake, other := time.NewTicker(time.Millisecond), time.NewTicker(time.Millisecond)
	defer wake.Stop()
	defer other.Stop()
	for {
		select {
		case <-stop:
			return
		case <-wake.C:
		}
		for range 20 {
			select {
			case <-time.After(0):
			default:
			}
		}
		select {
		case <-other.C:
		default:
		}
		time.AfterFunc(time.Millisecond, func() { time.AfterFunc(time.Millisecond/2, func() {}) })
	}
}
