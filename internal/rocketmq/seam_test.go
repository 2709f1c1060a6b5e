package rocketmq_test

import (
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/runtime"
)

// The client fills the engine's seam.
var _ runtime.Broker = (*rocketmq.Client)(nil)
