package main

import (
	"context"
	"fmt"

	"github.com/streamd/streamd/sdk"
)

// config is what stands under `config:` of the stream's allocation.
type config struct {
	Attribute string `json:"attribute" default:"zone" doc:"attribute of a member's id that names its zone"`
	Zones     []zone `json:"zones" required:"true" doc:"where the brokers are"`
}

type zone struct {
	Name    string   `json:"name" required:"true" doc:"as members call it"`
	Brokers []string `json:"brokers" required:"true" doc:"broker names in this zone"`
}

// nearest gives each queue to a member in the zone of its broker, the one with the fewest queues so far. Queues of a zone
// without members, and of brokers without a zone, go to anybody.
type nearest struct {
	attribute string
	zoneOf    map[string]string // by broker
}

func newNearest(_ context.Context, c config, _ sdk.Env) (*nearest, error) {
	n := &nearest{attribute: c.Attribute, zoneOf: map[string]string{}}
	for _, z := range c.Zones {
		for _, broker := range z.Brokers {
			if other, taken := n.zoneOf[broker]; taken {
				return nil, fmt.Errorf("broker %s is in zone %s and in zone %s: leave one out", broker, other, z.Name)
			}
			n.zoneOf[broker] = z.Name
		}
	}
	return n, nil
}

func (*nearest) Name() string { return "nearest" }

// Needs says that every queue gets an owner, and that ids of members have to carry the attribute.
func (n *nearest) Needs() sdk.Needs { return sdk.Needs{Attributes: []string{n.attribute}} }

// Allocate is a pure function of its input: it goes through sorted lists, never through a map.
func (n *nearest) Allocate(in sdk.StrategyInput) ([]int32, error) {
	owner := make([]int32, len(in.Queues))
	load := make([]int, len(in.Members))
	for pass := range 2 { // near queues first, so that the others fill up the gaps
		for i, q := range in.Queues {
			near := n.in(in.Members, n.zoneOf[q.Broker])
			if (pass == 0) != (len(near) > 0) {
				continue
			}
			if len(near) == 0 {
				near = n.in(in.Members, "")
			}
			best := near[0]
			for _, m := range near {
				if load[m] < load[best] {
					best = m
				}
			}
			owner[i] = int32(best)
			load[best]++
		}
	}
	return owner, nil
}

// in returns the indexes of the members in a zone; of all for "".
func (n *nearest) in(members []sdk.Member, zone string) []int {
	var out []int
	for i, m := range members {
		if zone == "" || m.Attributes[n.attribute] == zone {
			out = append(out, i)
		}
	}
	return out
}
