package rocketmq

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// knowsV2 answers heartbeats as a broker from 5.1.3 on does; changed is what it says of the subscriptions.
func knowsV2(changed *atomic.Bool) func(*wire.Command) *wire.Command {
	return func(req *wire.Command) *wire.Command {
		resp := wire.NewResponse(req, wire.RespSuccess, "")
		resp.Ext = wire.Fields{{Key: fieldHeartbeatV2, Value: "true"}, {Key: fieldSubChange, Value: strconv.FormatBool(changed.Load())}}
		return resp
	}
}

func short(c *Config) { c.ShortHeartbeats = true }

// lastBeat is the newest heartbeat: whether it is without subscriptions, and its fingerprint.
func lastBeat(t *testing.T, s *server) (withoutSub bool, fingerprint int32, subscriptions int) {
	t.Helper()
	all := heartbeats(t, s)
	h := all[len(all)-1]
	for _, c := range h.ConsumerDataSet {
		subscriptions += len(c.SubscriptionDataSet)
	}
	return h.WithoutSub, h.HeartbeatFingerprint, subscriptions
}

// Heartbeats get short when the broker said that it knows how and was told all; whatever is in doubt is told in full.
func TestShortHeartbeats(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		var changed atomic.Bool
		broker.on(wire.ReqHeartbeat, knowsV2(&changed))
		c := n.start(t, short)
		s := spec("G")
		version, tags := int64(1), "a"
		s.Subscriptions = func() []Subscription {
			return []Subscription{{Topic: "T", Expression: tags, Type: FilterTag, Version: version}}
		}
		join(t, c, s)
		beat := func(what string, short bool) {
			t.Helper()
			if err := c.Heartbeat(t.Context()); err != nil {
				t.Fatal(err)
			}
			without, fingerprint, subscriptions := lastBeat(t, broker)
			if without != short || short != (subscriptions == 0) || fingerprint == 0 {
				t.Errorf("%s: without subscriptions is %t (%d of them), fingerprint %d; want short %t", what, without, subscriptions, fingerprint, short)
			}
		}
		if first := heartbeats(t, broker)[0]; first.WithoutSub || first.HeartbeatFingerprint == 0 {
			t.Errorf("the first heartbeat: %+v", first)
		}
		beat("told before", true)
		version = 2
		beat("a newer version of the same subscription", false)
		beat("told again", true)
		tags = "a || b"
		changed.Store(true) // as brokers answer then
		beat("a change of ours", false)
		changed.Store(false)
		beat("the broker said that something changed", false)
		beat("told at last", true)
		changed.Store(true) // another member told it something else
		beat("another member's change is learned from the answer", true)
		beat("after another member's change", false)
		changed.Store(false)
		beat("after it was told", false)
		beat("quiet again", true)
		broker.kill()
		broker.set(up)
		wait(3 * time.Second)
		if without, _, _ := lastBeat(t, broker); without {
			t.Error("the first heartbeat of a new connection is short")
		}
	})
}

func TestHeartbeatsAreFull(t *testing.T) {
	for name, c := range map[string]struct {
		edit   func(*Config)
		script func(*wire.Command) *wire.Command
	}{
		"to a broker that knows no other":       {short, nil},
		"unless the client is to write them so": {nil, knowsV2(new(atomic.Bool))},
	} {
		bubbletest.Run(t, func(t *testing.T) {
			n, _, broker := one(t)
			if c.script != nil {
				broker.on(wire.ReqHeartbeat, c.script)
			}
			client := n.start(t, c.edit)
			join(t, client, spec("G"))
			for range 3 {
				if err := client.Heartbeat(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for i, h := range heartbeats(t, broker) {
				if h.WithoutSub || len(h.ConsumerDataSet) > 0 && len(h.ConsumerDataSet[0].SubscriptionDataSet) == 0 {
					t.Errorf("%s: heartbeat %d is short", name, i)
				}
			}
		})
	}
}
