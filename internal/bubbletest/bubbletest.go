package bubbletest

import (
	"testing"
	"testing/synctest"
)

// Run is [synctest.Test]; with the race detector the process has one processor until it returns.
func Run(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	defer narrow()()
	synctest.Test(t, f)
}
