package daemon

import (
	"math"
	"os"
	"runtime/debug"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/runtime"
)

// Share of the memory left by plugins that the windows of all streams may hold (design.md 15).
const windowPercent = 40

// leastMemory is what windows get however little is left: below it a few large messages would stop every stream.
const leastMemory = 64 << 20

// memoryBudget is the bytes that windows may hold: a share of what this process may use, less what the plugins may.
// Without any limit it is the engine's default.
func memoryBudget(c *config.Config, limit int64) int64 {
	if limit <= 0 {
		return runtime.DefaultMemory
	}
	for _, p := range c.Plugins {
		limit -= int64(p.Limits.Memory) * int64(p.Instances)
	}
	return max(limit/100*windowPercent, leastMemory)
}

// memoryLimit is what this process may use: GOMEMLIMIT, else the least memory.max of its control groups; 0 = no limit.
func memoryLimit() int64 {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return limit
	}
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0 // no control groups here
	}
	return cgroupLimit(os.DirFS("/sys/fs/cgroup"), string(self))
}
