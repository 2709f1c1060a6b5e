//go:build race

package bubbletest

import (
	goruntime "runtime"
	"sync"
)

// width counts the bubbles at work: tests run side by side, and the last to end gives the processors back.
var width struct { //nolint:gochecknoglobals // the number of processors is the process's
	sync.Mutex
	bubbles, before int
}

func narrow() (widen func()) {
	width.Lock()
	defer width.Unlock()
	if width.bubbles++; width.bubbles == 1 {
		width.before = goruntime.GOMAXPROCS(1)
	}
	return func() {
		width.Lock()
		defer width.Unlock()
		if width.bubbles--; width.bubbles == 0 {
			goruntime.GOMAXPROCS(width.before)
		}
	}
}
