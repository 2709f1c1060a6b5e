package group

import (
	"testing"
	"time"

	"github.com/streamd/streamd/sdk"
)

// A member that stops and drains for long has nothing to do but wait: it must not be told to look again at once, for ever.
func TestNext_whileStopping(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	c := NewCore(now, func() float64 { return 0.5 }, 0)
	q := sdk.Queue{Topic: "T", Broker: "b"}
	c.Step(now, Input{})
	c.Step(now, Input{Kind: InRound, Topics: []Topic{{Name: "T", Known: true, Mine: []sdk.Queue{q}}}})
	c.Step(now, Input{Kind: InPeers})
	c.Step(now, Input{Kind: InStop})
	for range 10 {
		now = now.Add(Period)
		if actions := c.Step(now, Input{}); len(actions) > 0 {
			t.Fatalf("it does %v", actions)
		}
		if next := c.Next(); !next.IsZero() && !next.After(now) {
			t.Fatalf("at %s it is to be called again at %s, though there is nothing to do", now.Format(time.TimeOnly), next.Format(time.TimeOnly))
		}
	}
	if c.Empty() {
		t.Error("the queue is gone before it was released")
	}
}
