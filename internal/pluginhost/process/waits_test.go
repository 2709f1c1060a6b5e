package process

import (
	"os"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestCPUWaits_growsWhereThreadsOutnumberProcessors lets more threads spin than there are processors: some have to wait.
func TestCPUWaits_growsWhereThreadsOutnumberProcessors(t *testing.T) {
	t.Parallel()
	var stop atomic.Bool
	var spinners, begun sync.WaitGroup
	defer spinners.Wait() // before goleak looks, however busy the machine is
	defer stop.Store(true)
	threads := 4 * goruntime.NumCPU()
	begun.Add(threads)
	for range threads {
		spinners.Go(func() { spin(&begun, &stop) })
	}
	begun.Wait()
	before := CPUWaits(os.Getpid())
	if len(before) < threads {
		t.Fatalf("%d threads are known, at least %d run", len(before), threads)
	}
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); goruntime.Gosched() {
		for thread, waited := range CPUWaits(os.Getpid()) {
			if waited > before[thread] {
				return
			}
		}
	}
	t.Error("no thread has waited for a processor")
}

func spin(begun *sync.WaitGroup, stop *atomic.Bool) {
	goruntime.LockOSThread() // the thread ends with the goroutine
	begun.Done()
	for spun := 0; !stop.Load(); {
		spun++
	}
}

func TestCPUWaits_ofNoProcess(t *testing.T) {
	t.Parallel()
	if waits := CPUWaits(1 << 30); len(waits) != 0 {
		t.Errorf("got %v", waits)
	}
}
