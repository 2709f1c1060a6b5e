package queue

import "testing"

func TestTryAcquireReservesAllOrNothing(t *testing.T) {
	process := NewBudget("the process", 100, nil)
	a, b := NewBudget("stream a", 80, process), NewBudget("stream b", 80, process)
	if !a.TryAcquire(70) || !b.TryAcquire(1) || b.TryAcquire(70) {
		t.Error("the process's limit does not hold")
	}
	if b.Used() != 1 || process.Used() != 71 {
		t.Errorf("a refusal reserved something: stream %d, process %d", b.Used(), process.Used())
	}
	a.Give(70)
	b.Give(1)
	if !b.TryAcquire(200) || b.TryAcquire(1) { // what does not fit an empty budget passes anyway
		t.Error("one that is larger than the limit does not pass alone")
	}
	if !(*Budget)(nil).TryAcquire(1) {
		t.Error("no budget is a limit")
	}
}
