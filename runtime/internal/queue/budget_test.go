package queue

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
)

func TestBudgetServesInLineAndNeverLeaks(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		process := NewBudget("the process", 100, nil)
		b := NewBudget("stream a", 60, process)
		ctx := t.Context()
		if err := b.Acquire(ctx, 50); err != nil {
			t.Fatal(err)
		}
		var served [3]atomic.Bool
		for i := range 3 {
			go func() { served[i].Store(b.Acquire(ctx, 30) == nil) }()
			synctest.Wait()
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := b.Acquire(short, 10); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the fourth in line got %v", err)
		}
		b.Give(50)
		synctest.Wait()
		if !served[0].Load() || !served[1].Load() || served[2].Load() {
			t.Error("not the first two in line were served")
		}
		b.Give(30)
		synctest.Wait()
		b.Give(60)
		if !served[2].Load() || b.Used() != 0 || process.Used() != 0 {
			t.Errorf("used %d and %d", b.Used(), process.Used())
		}
	})
}

func TestBudgetLetsTheOversizedPass(t *testing.T) {
	b := NewBudget("s", 10, NewBudget("p", 5, nil))
	if err := b.Acquire(t.Context(), 1000); err != nil {
		t.Fatal(err)
	}
	b.Correct(-400)
	b.Correct(100)
	b.Give(700)
	if b.Used() != 0 || b.parent.Used() != 0 {
		t.Errorf("used %d, %d", b.Used(), b.parent.Used())
	}
}

func TestBudgetWaitsForTheProcess(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		process := NewBudget("the process", 10, nil)
		a, b := NewBudget("a", 100, process), NewBudget("b", 100, process)
		if err := a.Acquire(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Acquire(ctx, 5); err == nil {
			t.Error("the process's limit did not hold")
		}
		if b.Used() != 0 {
			t.Errorf("%d bytes stay reserved in the stream", b.Used())
		}
		if name, full := b.Full(); full {
			t.Errorf("%s is still waited for", name)
		}
	})
}
