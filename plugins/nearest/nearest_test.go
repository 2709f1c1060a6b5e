package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/allocate/allocatetest"
	"github.com/streamd/streamd/sdk"
)

func twoZones(t *testing.T) *nearest {
	t.Helper()
	n, err := newNearest(t.Context(), config{Attribute: "zone", Zones: []zone{
		{Name: "a", Brokers: []string{"broker-0"}}, {Name: "b", Brokers: []string{"broker-1"}},
	}}, sdk.Env{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Every promise of a strategy, over every size.
func TestPromises(t *testing.T) {
	allocatetest.Run(t, allocatetest.Suite{
		New:    func() allocate.Strategy { return twoZones(t) },
		Member: func(n int) string { return fmt.Sprintf("10.0.0.%d@1@zone=%c", n, 'a'+n%3) },
		Broker: func(n int) string { return fmt.Sprintf("broker-%d", n%3) },

		MaxQueues: 24, MaxMembers: 24,
	})
}

func TestNearestReadsFromItsZone(t *testing.T) {
	all, err := allocatetest.ParseQueues("T", "broker-0:0-3 broker-1:0-1 broker-2:0-1")
	if err != nil {
		t.Fatal(err)
	}
	in := allocatetest.Input(t, all, []string{"1@1@zone=a", "2@1@zone=a", "3@1@zone=b"})
	got, err := twoZones(t).Allocate(in)
	if err != nil {
		t.Fatal(err)
	}
	// Zone a's members share broker-0; zone b has broker-1; the zoneless broker-2 goes to whoever has the fewest.
	if want := []int32{0, 1, 0, 1, 2, 2, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("answered %v, want %v", got, want)
	}
}

func TestABrokerHasOneZone(t *testing.T) {
	n, err := newNearest(t.Context(), config{Zones: []zone{{Name: "a", Brokers: []string{"x"}}, {Name: "b", Brokers: []string{"x"}}}}, sdk.Env{})
	if err == nil {
		t.Errorf("%v was built although broker x is in two zones", n)
	}
}
