//go:build proof

package interop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/test/interop/cluster"
)

// TestProof is TestProof_embedded on two real brokers, with freezes of up to 150 s. It takes some ten minutes: `make proof`.
func TestProof(t *testing.T) {
	t.Parallel()
	place := newPlace(t, cluster.Options{Brokers: 2, Broker: quickRetries()})
	broker := place.Brokers[1]
	none := newProof(t, place, "ProofNone", "none", 8)
	queue := newProof(t, place, "ProofQueue", "queue", 8)
	proofs{none, queue}.run(t, func() {
		broker.Kill()
		if err := broker.Start(within(t, patience)); err != nil {
			t.Fatal(err)
		}
	}, []freeze{
		{none, "streamd 1", 75 * time.Second},
		{none, "streamd 2", 150 * time.Second},
		{none, "java 1", 40 * time.Second},
		{none, "go", 40 * time.Second},
		{queue, "streamd 1", 40 * time.Second},
		{queue, "streamd 2", 150 * time.Second},
		{queue, "java 1", 75 * time.Second},
	})
}

// TestProof_embedded puts groups of five members (two streamd, two Java, one Go; of four where order is kept) on the embedded
// broker and lets everything happen to them that happens to groups, under a steady load: they join, leave, are killed and
// frozen, a plugin crashes, the broker is killed, an operator resets the offsets. The ledger that all members keep says: LOSS 0,
// each repeat has a cause that promise 2 names, no two streamd members work on one queue, and order holds where it was promised.
func TestProof_embedded(t *testing.T) {
	t.Parallel()
	port, err := cluster.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	address, data := fmt.Sprintf("127.0.0.1:%d", port), t.TempDir()
	start := func() *cluster.Process {
		return startEmbedded(t, address, address, "--data", data, "--flush", "sync", "--delay-levels", strings.Join(delayLevels(), ","))
	}
	broker := start()
	place := toolsOf(t, address)
	none := newProof(t, place, "ProofNone", "none", 8)
	queue := newProof(t, place, "ProofQueue", "queue", 8)
	proofs{none, queue}.run(t, func() {
		broker.Kill()
		broker = start()
	}, []freeze{{none, "streamd 2", 20 * time.Second}, {queue, "streamd 1", 20 * time.Second}})
}
