package interop

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/streamd/streamd/test/brokersuite"
	"github.com/streamd/streamd/test/interop/cluster"
)

// The suite's expectations are what this test saw: with -update it writes them anew.
var updateSuite = flag.Bool("update", false, "write down anew what the real broker answers in the broker suite")

// TestBrokerSuite holds the real broker to the answers that the embedded broker is held to.
func TestBrokerSuite(t *testing.T) {
	t.Parallel()
	p := newPlace(t, cluster.Options{Broker: brokersuite.BrokerSettings()})
	brokersuite.Begin(t, p.Addr)
	for _, s := range brokersuite.Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			got := brokersuite.Record(t, p.Addr, s)
			if *updateSuite {
				path := filepath.Join(cluster.Root(), "test", "brokersuite", "testdata", "real", s.Name+".txt")
				if err := os.WriteFile(path, []byte(got.Text()), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := brokersuite.Expected(s.Name)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range brokersuite.Compare(want, got) {
				t.Error(d)
			}
		})
	}
}
