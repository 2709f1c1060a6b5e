package daemon

import (
	"os"
	"runtime/debug"
)

const (
	// ballastSize is memory that is reserved and never touched, so it takes no RAM.
	ballastSize = 32 << 20
	// ballastFloor is the memory limit below which there is no room for it.
	ballastFloor = 256 << 20
)

// ballast makes the garbage collector wait for some 32 MiB of garbage instead of 4: at full rate a small heap is collected
// dozens of times a second, and while it is, every pointer that a window or a batch sets costs more. Unlike a higher GOGC
// it does not multiply the heap of a streamd that holds much. There is none when the operator has set GOGC or a tight
// GOMEMLIMIT. The caller keeps the result alive.
func ballast() []byte {
	if os.Getenv("GOGC") != "" || debug.SetMemoryLimit(-1) < ballastFloor {
		return nil
	}
	return make([]byte, ballastSize)
}
