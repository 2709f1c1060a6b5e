package cluster

import (
	"context"
	"strings"
	"testing"
)

// TestCluster_worksWithItsOwnClients checks the harness: what one official client produced, another one gets.
func TestCluster_worksWithItsOwnClients(t *testing.T) {
	c := New(t, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	a := c.Admin(t)
	if err := a.CreateTopic(ctx, "Harness", 4); err != nil {
		t.Fatal(err)
	}
	consumer, err := c.JavaReady(ctx, "Consume", c.Addr, "harness", "Harness", "*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(consumer.Kill)
	producer, err := c.Java(ctx, "Produce", c.Addr, "Harness", "10", "100", "1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(producer.Kill)
	seen := map[string]bool{}
	if _, err := consumer.WaitLine(ctx, func(l string) bool {
		if strings.HasPrefix(l, "got ") {
			seen[strings.Fields(l)[2]] = true
		}
		return len(seen) == 10
	}); err != nil {
		t.Fatal(err)
	}
	out, err := a.Run(ctx, "consumerProgress", "-g", "harness")
	if err != nil || !strings.Contains(out, "Consume TPS") {
		t.Fatalf("consumerProgress: %v\n%s", err, out)
	}
}
