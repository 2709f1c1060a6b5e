package main

import (
	"testing"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/sdktest"
)

func TestLog(t *testing.T) {
	sdktest.Run(t, sdk.Component("log", newLog), `{"bodies":true}`)
}
