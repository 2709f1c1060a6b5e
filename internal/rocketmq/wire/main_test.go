package wire

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain also holds the decompressors to starting no goroutine.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
