package rocketmq

import (
	"errors"
	"testing"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// A broker before 5.0 does not know 352: the group is found among all (201), by its name on the wire.
func TestGroupConfig(t *testing.T) {
	settings := wire.NewSubscriptionGroup("NS%G")
	settings.RetryMaxTimes = 4
	all := wire.SubscriptionGroupTable{Groups: map[string]wire.SubscriptionGroup{"NS%G": settings}}
	for name, c := range map[string]struct {
		group    string
		prepare  func(*testing.T, *server)
		expected error
	}{
		"5.x": {group: "G", prepare: func(t *testing.T, s *server) {
			t.Helper()
			s.on(wire.ReqGetSubscriptionGroupConfig, answerBody(t, &settings))
		}},
		"4.9": {group: "G", prepare: func(t *testing.T, s *server) {
			t.Helper()
			s.on(wire.ReqGetSubscriptionGroupConfig, refuse(wire.RespNotSupported, " request type 352 not supported"))
			s.on(wire.ReqGetAllSubscriptionGroups, answerBody(t, &all))
		}},
		"5.x without it": {group: "H", expected: ErrGroupNotFound, prepare: func(_ *testing.T, s *server) {
			s.on(wire.ReqGetSubscriptionGroupConfig, refuse(wire.RespGroupNotExist, "No group in this broker. group: H"))
		}},
		"4.9 without it": {group: "H", expected: ErrGroupNotFound, prepare: func(t *testing.T, s *server) {
			t.Helper()
			s.on(wire.ReqGetSubscriptionGroupConfig, refuse(wire.RespNotSupported, " request type 352 not supported"))
			s.on(wire.ReqGetAllSubscriptionGroups, answerBody(t, &all))
		}},
	} {
		bubbletest.Run(t, func(t *testing.T) {
			n := newNetwork(t)
			info := wire.ClusterInfo{Brokers: map[string]wire.BrokerData{
				"a": {Name: "a", Addrs: wire.IDTable[string]{0: "a:1", 1: "a:2"}}, "b": {Name: "b", Addrs: wire.IDTable[string]{1: "b:2"}},
			}}
			n.add("ns:1").on(wire.ReqGetClusterInfo, answerBody(t, &info))
			c.prepare(t, n.add("a:1"))
			client := n.start(t, func(cfg *Config) { cfg.Namespace = "NS" })
			masters, err := client.Masters(t.Context())
			if err != nil || len(masters) != 1 || masters[0] != (BrokerAddr{Name: "a", Addr: "a:1"}) {
				t.Fatalf("%s: masters %+v, %v", name, masters, err)
			}
			g, err := client.GroupConfig(t.Context(), masters[0], c.group)
			if !errors.Is(err, c.expected) {
				t.Fatalf("%s: %v, want %v", name, err, c.expected)
			}
			if err == nil && (g.RetryMaxTimes != 4 || g.GroupName != "G") {
				t.Errorf("%s: %+v", name, g)
			}
		})
	}
}

// A broker that does not tell the number has not said that there are none.
func TestRetryQueues(t *testing.T) {
	settings := wire.NewSubscriptionGroup("G")
	settings.RetryQueues = 0
	notSupported := refuse(wire.RespNotSupported, " request type 352 not supported")
	for name, c := range map[string]struct {
		one, all func(*wire.Command) *wire.Command
		queues   int32
		expected error
	}{
		"5.x":                   {one: answerBody(t, &settings)},
		"4.9":                   {one: notSupported, all: answerBody(t, &wire.SubscriptionGroupTable{Groups: map[string]wire.SubscriptionGroup{"G": wire.NewSubscriptionGroup("G")}}), queues: 1},
		"5.x without the group": {one: refuse(wire.RespGroupNotExist, "No group in this broker. group: G"), expected: ErrGroupNotFound},
		"4.9 without the group": {one: notSupported, all: answerBody(t, &wire.SubscriptionGroupTable{}), expected: ErrGroupNotFound},
		"not told":              {one: answerBody(t, &map[string]any{"groupName": "G"}), expected: ErrProtocol},
	} {
		bubbletest.Run(t, func(t *testing.T) {
			n, _, broker := one(t)
			broker.on(wire.ReqGetSubscriptionGroupConfig, c.one)
			if c.all != nil {
				broker.on(wire.ReqGetAllSubscriptionGroups, c.all)
			}
			client := n.start(t, nil)
			if _, err := client.Queues(t.Context(), "T"); err != nil {
				t.Fatal(err)
			}
			if queues, err := client.RetryQueues(t.Context(), "G", "a"); queues != c.queues || !errors.Is(err, c.expected) {
				t.Errorf("%s: %d, %v; want %d, %v", name, queues, err, c.queues, c.expected)
			}
		})
	}
}
