package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/streamd/streamd/internal/bubbletest"
)

// Who was let in a moment before the client was closed asks for a route when it is: nothing is begun for him any more, since
// Close may have waited for all that was.
func TestNothingIsBegunWhenTheClientIsClosed(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, _ := one(t)
		c := n.start(t, nil)
		shut(t, c)
		c.routes.fetch = func(context.Context, string) (*route, error) {
			t.Error("a route is fetched")
			return nil, ErrNotRunning
		}
		if _, err := c.routes.get(t.Context(), "U"); !errors.Is(err, ErrNotRunning) {
			t.Errorf("a route: %v", err)
		}
		c.routes.renew(t.Context(), "T")
		c.RouteChanged("T", func() { t.Error("a change is told") })()
	})
}

// A client is closed while others use it: on several processors, which virtual time does not have.
func TestCloseWhileOthersAsk(t *testing.T) {
	for range 20 {
		n, _, _ := one(t)
		c := n.start(t, nil)
		var others sync.WaitGroup
		begun := make(chan struct{})
		var once sync.Once
		for i := range 8 {
			others.Go(func() {
				for k := 0; c.running() == nil; k++ {
					_, _ = c.Queues(t.Context(), fmt.Sprint("U", i, "-", k)) // there is none
					c.RouteChanged("T", func() {})
					once.Do(func() { close(begun) })
				}
			})
		}
		<-begun
		shut(t, c)
		others.Wait()
	}
}
