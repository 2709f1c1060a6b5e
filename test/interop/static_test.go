package interop

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
)

// TestStaticTopic: its queues are mapped onto those of brokers; that is refused in words.
func TestStaticTopic(t *testing.T) {
	t.Parallel()
	p := mainCluster(t)
	p.run(t, "updateStaticTopic", "-c", "DefaultCluster", "-t", "Static", "-qn", "4")
	c := newClient(t, p.Addr)
	until(t, time.Minute, "the static topic's route", func() (bool, string) {
		_, err := c.Queues(t.Context(), "Static")
		return errors.Is(err, rocketmq.ErrStaticTopic), fmt.Sprint(err)
	})
	if err := c.Join(t.Context(), groupOf("static", "Static")); !rocketmq.IsFatal(err) {
		t.Errorf("joining a group on a static topic: %v", err)
	}
}
