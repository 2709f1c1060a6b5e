package main

import (
	"testing"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/sdktest"
)

func TestBlackhole(t *testing.T) {
	sdktest.Run(t, sdk.Component("blackhole", newBlackhole), "")
	sdktest.Run(t, sdk.BatchComponent("batch", newBatchBlackhole), "")
}
