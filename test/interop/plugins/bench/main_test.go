package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/sdktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestComponents(t *testing.T) {
	config := `{"file": ` + strconv.Quote(filepath.Join(t.TempDir(), "notes")) + `, "count": 1000000}`
	sdktest.Run(t, sdk.Component("drain", newDrain), config)
	sdktest.Run(t, sdk.BatchComponent("drain_batch", newDrainBatch), config)
	sdktest.Run(t, sdk.Component("latency", newLatency), config)
	sdktest.Run(t, sdk.Component("deliveries", newDeliveries), config)
}

func TestDrain_notesFirstAndLastOnce(t *testing.T) {
	d := &drain{Config: Config{File: filepath.Join(t.TempDir(), "notes"), Count: 10}}
	for _, n := range []int{3, 3, 3, 3, 3} {
		if err := d.add(n); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(d.File)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "first ") || !strings.HasPrefix(lines[1], "last ") {
		t.Errorf("notes:\n%s", text)
	}
}
