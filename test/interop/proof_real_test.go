//go:build proof

package interop

import (
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
		if err := broker.Start(within(t, 90*time.Second)); err != nil {
			t.Fatal(err)
		}
	}, []freeze{
		{none, "streamd 1", 75 * time.Second}, {none, "streamd 2", 150 * time.Second}, {none, "java 1", 40 * time.Second}, {none, "go", 40 * time.Second},
		{queue, "streamd 1", 40 * time.Second}, {queue, "streamd 2", 150 * time.Second}, {queue, "java 1", 75 * time.Second},
	})
}
