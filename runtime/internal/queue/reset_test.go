package queue

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq"
)

// resetTo is a broker at which a reset to offset waits. It tells it to the next pull, once.
func (o *lookout) resetTo(offset int64) *rocketmq.PullResult {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stored, o.reset = offset, true
	return &rocketmq.PullResult{Status: rocketmq.PullOffsetIllegal, Next: offset, Max: 100, Reset: true, Release: func() {}}
}

// told is what a broker does that has told of its reset.
func (o *lookout) told() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reset = false
}

func resetSettings() *Settings {
	return &Settings{DrainLimit: time.Minute, CommitEvery: time.Second, CommitCount: 1000, Limits: Limits{Messages: 1000, Bytes: 1 << 20, Span: 1000}}
}

// The broker tells a reset once, and the pull that it is told to may be the one that is given up: because a commit was refused
// for that very reset, for a changed subscription, or for a hand-over. The reset is done all the same.
func TestAResetThatAGivenUpPullBringsIsDone(t *testing.T) {
	for name, giveUp := range map[string]func(o *lookout, w *Worker){
		"a commit was refused":     func(o *lookout, _ *Worker) { o.settle(3) },
		"the subscription changed": func(_ *lookout, w *Worker) { w.Refresh() },
		"a hand-over begins":       func(_ *lookout, w *Worker) { w.Drain(false) },
		"a hand-over is cut":       func(_ *lookout, w *Worker) { w.Drain(true) },
		"what is settled is handed over": func(o *lookout, w *Worker) {
			w.Drain(false)
			o.settle(3)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				o := newLookout(t)
				o.stored = 10
				w := o.worker(resetSettings())
				go w.Run(t.Context())
				synctest.Wait()
				o.arrive(10, 3)
				res := o.resetTo(7)
				o.canceled = func() (*rocketmq.PullResult, error) {
					o.told()
					return res, nil
				}
				giveUp(o, w)
				pass(10 * time.Second)
				o.mu.Lock()
				o.canceled = nil
				stored, pulls := o.stored, slices.Clone(o.pulls)
				o.mu.Unlock()
				if stored != 7 {
					t.Errorf("the stored offset is %d, the operator chose 7", stored)
				}
				if n := w.Status().Counters.Resets; n != 1 {
					t.Errorf("%d resets are counted", n)
				}
				select {
				case <-w.Done():
					return
				default:
				}
				if last := pulls[len(pulls)-1]; last != 7 {
					t.Errorf("it pulls from %d", last)
				}
				o.end(w)
			})
		})
	}
}

// The answer that told of the reset was lost, and the broker has forgotten it. Its position is still stored: nothing is committed
// over it, and the queue goes there.
func TestAResetWhoseAnswerIsLostIsDone(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		o := newLookout(t)
		o.stored = 10
		w := o.worker(resetSettings())
		go w.Run(t.Context())
		synctest.Wait()
		o.arrive(10, 3)
		o.resetTo(7)
		o.canceled = func() (*rocketmq.PullResult, error) {
			o.told()
			return nil, context.Canceled
		}
		o.settle(3) // the commit is refused, the pull given up
		pass(10 * time.Second)
		o.mu.Lock()
		o.canceled, o.refusing = nil, true
		o.mu.Unlock()
		o.arrive(13, 2)
		o.settle(2)
		pass(10 * time.Second) // the stored offset cannot be asked for
		o.mu.Lock()
		if o.stored != 7 {
			t.Errorf("%d was committed over the reset to 7", o.stored)
		}
		o.refusing = false
		o.mu.Unlock()
		pass(time.Minute)
		o.arrive(15, 1)
		pass(10 * time.Second)
		o.mu.Lock()
		stored, last := o.stored, o.pulls[len(o.pulls)-1]
		o.mu.Unlock()
		if stored != 7 || last != 7 {
			t.Errorf("stored %d, pulls from %d, want both at the reset to 7", stored, last)
		}
		o.end(w)
	})
}

// A queue that is handed over while a reset waits commits nothing over it, whether the broker has told of it or not.
func TestADrainLeavesAResetThatWaits(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		o := newLookout(t)
		o.stored = 10
		w := o.worker(resetSettings())
		go w.Run(t.Context())
		synctest.Wait()
		o.arrive(10, 3)
		o.resetTo(7)
		o.settle(3)
		pass(10 * time.Second)
		o.told() // to a pull whose answer is lost
		o.canceled = func() (*rocketmq.PullResult, error) { return nil, errors.New("the connection is lost") }
		w.Drain(false)
		<-w.Done()
		if o.stored != 7 {
			t.Errorf("%d was committed over the reset to 7", o.stored)
		}
	})
}
