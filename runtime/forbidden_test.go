package runtime_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// The broker's word that a group may not broadcast is told with what allows it.
func TestBroadcastingThatIsForbidden(t *testing.T) {
	dir := t.TempDir()
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		r.cluster.Fault = func(op, _ string, q sdk.Queue) error {
			if op == "Pull" {
				return fmt.Errorf("pulling: %w", &rocketmq.ResponseError{Request: wire.ReqPullMessage, Code: wire.RespNoPermission, Broker: q.Broker, Remark: "the consumer group[G] can not consume by broadcast way"})
			}
			return nil
		}
		e := r.start(r.broadcaster("m1", dir))
		wait(5 * time.Second)
		if hold := e.Status().Streams[0].Queues[0].Hold; !strings.Contains(hold.Text, "consumeBroadcastEnable=false") || !strings.Contains(hold.Text, "mqadmin updateSubGroup") || !strings.Contains(hold.Text, "-d true") {
			t.Errorf("hold %+v", hold)
		}
		r.stop(e)
	})
}
