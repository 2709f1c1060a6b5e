package queue

import (
	"testing"
	"time"

	"github.com/streamd/streamd/sdk"
)

// What comes after the end of an epoch is late: it changes nothing but the memory it gives back.
func TestEndedEpochIsFenced(t *testing.T) {
	budget := NewBudget("s", 100, nil)
	if err := budget.Acquire(t.Context(), 30); err != nil {
		t.Fatal(err)
	}
	o := NewOwnership(sdk.Queue{Topic: "T"}, 1, 0, budget, make(chan struct{}, 1))
	released := 0
	c := chunkOf(0, 1, 2)
	c.bytes, c.release = 30, func() { released++ }
	for i := range c.Deliveries {
		c.Deliveries[i].Own = o
	}
	o.window.Admit(c, 3, time.Time{})
	a, b, last := &c.Deliveries[0], &c.Deliveries[1], &c.Deliveries[2]
	o.Sent(2)
	o.Drop([]*Delivery{last}, false) // was never sent
	if safe := o.End(); safe != 0 || o.Live() || !o.Closing() {
		t.Fatalf("safe %d", safe)
	}
	if late := o.Settle([]*Delivery{a}); late != 1 || o.Safe() != 0 {
		t.Errorf("%d late, safe %d; want 1 and 0", late, o.Safe())
	}
	if released != 0 || budget.Used() != 30 {
		t.Errorf("the buffer went back while a message of it is out")
	}
	o.Drop([]*Delivery{b}, true)
	if released != 1 || budget.Used() != 0 || o.Safe() != 0 {
		t.Errorf("released %d times, %d bytes used, safe %d", released, budget.Used(), o.Safe())
	}
}
