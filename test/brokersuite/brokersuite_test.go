package brokersuite_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/test/brokersuite"
)

var update = flag.Bool("update", false, "write down anew where the embedded broker differs; each step then needs an entry in Differences")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// embedded starts the embedded broker with the settings that the real one was recorded with.
func embedded(t *testing.T) string {
	t.Helper()
	const s = time.Second
	b := broker.New(broker.Config{
		DelayLevels:        []time.Duration{s, s, s, s, s, s, s, 2 * s, 3 * s, 4 * s, 5 * s, 6 * s, 7 * s, 8 * s, 9 * s, 10 * s, 11 * s, 12 * s},
		TransactionTimeout: 1500 * time.Millisecond, TransactionInterval: 2 * s,
		IdleTimeout: time.Hour, MemberTTL: time.Hour, // A slow machine takes its time, in which connections are silent.
	})
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b.Address()
}

// TestEmbedded runs every scenario against the embedded broker and compares with what a real RocketMQ answered.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	address := embedded(t)
	brokersuite.Begin(t, address)
	for _, s := range brokersuite.Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			got := brokersuite.Record(t, address, s)
			if *update {
				write(t, s.Name, got)
				return
			}
			want, err := brokersuite.ExpectedEmbedded(s.Name)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range brokersuite.Compare(want, got) {
				t.Error(d)
			}
		})
	}
}

func write(t *testing.T, scenario string, got *brokersuite.Transcript) {
	t.Helper()
	path := filepath.Join("testdata", "embedded", scenario+".txt")
	recorded, err := brokersuite.Expected(scenario)
	if err != nil {
		t.Fatal(err)
	}
	own := brokersuite.Differing(recorded, got)
	if own == "" {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return
	}
	if err := os.WriteFile(path, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
}
