package process

import (
	"os"
	goruntime "runtime"
	"sync/atomic"
	"testing"
	"time"
)

// TestCPUWaits_growsWhereThreadsOutnumberProcessors lets more threads spin than there are processors: some have to wait.
func TestCPUWaits_growsWhereThreadsOutnumberProcessors(t *testing.T) {
	t.Parallel()
	var stop atomic.Bool
	defer stop.Store(true)
	width := goruntime.GOMAXPROCS(0) // threads that Go lets run at once
	for range 4 * goruntime.NumCPU() {
		go spin(&stop)
	}
	before := CPUWaits(os.Getpid())
	if len(before) < width {
		t.Fatalf("%d threads are known, at least %d run", len(before), width)
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

func spin(stop *atomic.Bool) {
	goruntime.LockOSThread() // the thread ends with the goroutine
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
