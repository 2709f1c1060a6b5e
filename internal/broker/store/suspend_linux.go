package store

import (
	"time"

	"golang.org/x/sys/unix"
)

// suspended is for how long the machine has slept since it was started: its boot-time clock goes on in sleep, its monotonic
// clock, which is Go's, does not.
func suspended() time.Duration {
	var slept time.Duration
	for range 3 {
		before, awake := clockAt(unix.CLOCK_MONOTONIC)
		all, boot := clockAt(unix.CLOCK_BOOTTIME)
		after, again := clockAt(unix.CLOCK_MONOTONIC)
		if !awake || !boot || !again {
			return 0 // A kernel without them: the store's clock stands still while the machine sleeps.
		}
		if slept = all - before; after-before < time.Millisecond {
			break // Else this process was stopped in between.
		}
	}
	return slept
}

func clockAt(clock int32) (time.Duration, bool) {
	var t unix.Timespec
	err := unix.ClockGettime(clock, &t)
	return time.Duration(t.Nano()), err == nil
}
