package serve

import (
	"os"
	"runtime/debug"
)

const (
	// ballastSize is memory that is reserved and never touched, so it takes no RAM.
	ballastSize = 24 << 20
	// ballastFloor is the memory limit below which there is no room for it.
	ballastFloor = 128 << 20
)

// ballast makes the garbage collector wait for some 24 MiB of garbage instead of 4. Batches are garbage as soon as their
// messages are handled, so a small plugin would else collect hundreds of times a second: that is a third of its CPU. Unlike a
// higher GOGC it does not multiply the heap of a plugin that holds much. There is none when the operator has set GOGC or
// a tight GOMEMLIMIT. The caller keeps the result alive.
func ballast() []byte {
	if os.Getenv("GOGC") != "" || debug.SetMemoryLimit(-1) < ballastFloor {
		return nil
	}
	return make([]byte, ballastSize)
}
