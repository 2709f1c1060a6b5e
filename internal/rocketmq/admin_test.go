package rocketmq

import (
	"errors"
	"testing"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// A cluster's brokers register a while after they serve. A topic that nobody was asked to make is not made.
func TestCreateTopicWithoutABrokerIsNoSuccess(t *testing.T) {
	for name, info := range map[string]wire.ClusterInfo{
		"no broker is registered": {},
		"only a replica is":       {Brokers: map[string]wire.BrokerData{"a": {Name: "a", Addrs: wire.IDTable[string]{1: "a:2"}}}},
	} {
		bubbletest.Run(t, func(t *testing.T) {
			n := newNetwork(t)
			n.add("ns:1").on(wire.ReqGetClusterInfo, answerBody(t, &info))
			if err := n.start(t, nil).CreateTopic(t.Context(), "T", 4, 0); !errors.Is(err, ErrNoBroker) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
