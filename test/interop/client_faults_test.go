package interop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker/damage"
	"github.com/streamd/streamd/internal/broker/faultproxy"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/remoting"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/test/interop/cluster"
)

// behind puts a proxy before a real broker: the client reaches it where the route names the broker.
func behind(t *testing.T, p *place) (*faultproxy.Proxy, func(*rocketmq.Config)) {
	t.Helper()
	broker := p.Brokers[0].Addr
	proxy := faultproxy.New(faultproxy.Config{Target: broker})
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	return proxy, func(cfg *rocketmq.Config) {
		cfg.CallTimeout = 3 * time.Second
		cfg.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			if addr == broker {
				addr = proxy.Address()
			}
			return remoting.DialTCP(ctx, addr)
		}
	}
}

func pullOnce(ctx context.Context, c *rocketmq.Client, q sdk.Queue) ([]stored, error) {
	ms, _, err := read(ctx, c, "faults", q, 0)
	return ms, err
}

// TestClient_damagedAnswers: whatever a broker's answer to a pull looks like, it is an error or is refused message by
// message, never a wrong message; and the next pull works.
func TestClient_damagedAnswers(t *testing.T) {
	t.Parallel()
	p := mainCluster(t)
	topic := p.topic(t, "FaultDamage", 1)
	proxy, dial := behind(t, p)
	c := newClient(t, p.Addr, dial)
	q := sdk.Queue{Topic: topic, Broker: "broker-a"}
	sends := newClient(t, p.Addr) // c waits three seconds only, which is for answers that do not come
	for i := range 3 {            // of unlike sizes: a body that is cut between two messages is not damaged
		send(t, sends, &rocketmq.OutgoingMessage{Topic: topic, Body: fmt.Appendf(nil, "m%d%*s", i, 100*i, "")})
	}
	for _, kind := range damage.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			try := 0
			until(t, time.Minute, "a damaged answer", func() (bool, string) {
				rule := proxy.Inject(faultproxy.Rule{
					Direction: faultproxy.ToClient, Answers: true, Codes: []wire.RequestCode{wire.ReqPullMessage}, Times: 1, Do: faultproxy.Garble(kind),
				})
				defer rule.Lift()
				try++
				ms, err := pullOnce(within(t, 30*time.Second), c, q)
				if err == nil && try == 1 {
					t.Fatalf("a damaged answer was taken: %d messages", len(ms))
				}
				for i, m := range ms {
					if m.Text != []string{"m0", "m1", "m2"}[i] {
						t.Errorf("message %d reads %q", i, m.Text)
					}
				}
				// A slow broker's answer comes too late: undamaged, or damaged in the place of the next one's.
				return err != nil && rule.Hits() == 1, fmt.Sprint(err, rule.Hits())
			})
			checkWhole(t, c, q, 3)
		})
	}
}

// checkWhole waits until pulling works again.
func checkWhole(t *testing.T, c *rocketmq.Client, q sdk.Queue, n int) {
	t.Helper()
	until(t, 40*time.Second, "pulling works again", func() (bool, string) {
		ms, err := pullOnce(t.Context(), c, q)
		if err != nil {
			return false, err.Error()
		}
		return len(ms) == n, asJSON(len(ms))
	})
}

func TestClient_cutAndSilentConnections(t *testing.T) {
	t.Parallel()
	p := mainCluster(t)
	topic := p.topic(t, "FaultConnection", 1)
	proxy, dial := behind(t, p)
	c := newClient(t, p.Addr, dial)
	q := sdk.Queue{Topic: topic, Broker: "broker-a"}
	sendN(t, newClient(t, p.Addr), topic, "m", 3) // c waits three seconds only
	for _, tt := range []struct {
		name string
		do   faultproxy.Action
	}{{"cut", faultproxy.Cut()}, {"cut in a frame", faultproxy.CutMidFrame()}, {"half-closed", faultproxy.HalfClose()}, {"answer dropped", faultproxy.Drop()}} {
		t.Run(tt.name, func(t *testing.T) {
			rule := proxy.Inject(faultproxy.Rule{Direction: faultproxy.ToClient, Answers: true, Codes: []wire.RequestCode{wire.ReqUpdateConsumerOffset}, Times: 1, Do: tt.do})
			defer rule.Lift()
			_, err := c.Commit(within(t, 20*time.Second), "faults", q, 1)
			if err == nil || !rocketmq.IsUnknownOutcome(err) || !rocketmq.IsRetriable(err) {
				t.Errorf("a commit whose answer was lost: %v", err)
			}
			checkWhole(t, c, q, 3)
		})
	}
	t.Run("silent", func(t *testing.T) {
		resume := proxy.Stall()
		start := time.Now()
		_, err := c.MaxOffset(within(t, 30*time.Second), q)
		took := time.Since(start)
		resume()
		if err == nil || took > 20*time.Second || !rocketmq.IsRetriable(err) {
			t.Errorf("a broker that says nothing, after %s: %v", took, err)
		}
		checkWhole(t, c, q, 3)
	})
	t.Run("refused", func(t *testing.T) {
		rule := proxy.Inject(faultproxy.Rule{Direction: faultproxy.ToBroker, Codes: []wire.RequestCode{wire.ReqSendBack}, Do: faultproxy.Refuse(wire.RespSystemBusy, "try later")})
		defer rule.Lift()
		var ms []stored
		until(t, time.Minute, "a message to send back", func() (bool, string) {
			var err error
			ms, err = pullOnce(t.Context(), c, q)
			return err == nil && len(ms) > 0, fmt.Sprint(err)
		})
		var refused *rocketmq.ResponseError
		if err := c.SendBack(t.Context(), sendBack("faults", ms[0], 0)); !errors.As(err, &refused) || rocketmq.IsUnknownOutcome(err) || !rocketmq.IsRetriable(err) {
			t.Errorf("a refused send-back: %v", err)
		}
	})
}

// TestClient_outlivesItsServers has a cluster of its own, whose parts it kills.
func TestClient_outlivesItsServers(t *testing.T) {
	t.Parallel()
	p := newPlace(t, cluster.Options{})
	topic := p.topic(t, "FaultServers", 2)
	c := newClient(t, p.Addr, func(cfg *rocketmq.Config) { cfg.RouteInterval, cfg.BackoffMax = time.Second, 2*time.Second })
	join(t, c, groupOf("servers", topic))
	sendN(t, c, topic, "m", 10)
	q := sdk.Queue{Topic: topic, Broker: "broker-a"}

	p.StopNameServer()
	gone, cancel := context.WithTimeout(t.Context(), 3*time.Second) // several rounds of route queries
	<-gone.Done()
	cancel()
	if qs, err := c.Queues(t.Context(), topic); len(qs) != 2 || err != nil {
		t.Errorf("with no name server the route is %v, %v", qs, err)
	}
	send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Body: []byte("without a name server")})
	if _, err := c.Queues(t.Context(), "NeverSeen"); !errors.Is(err, rocketmq.ErrNoNameServer) || errors.Is(err, rocketmq.ErrTopicNotFound) {
		t.Errorf("an unknown topic with no name server: %v", err)
	}
	if err := p.StartNameServer(within(t, patience)); err != nil {
		t.Fatal(err)
	}

	if _, err := c.Commit(t.Context(), "servers", q, 2); err != nil {
		t.Fatal(err)
	}
	p.Brokers[0].Kill()
	if _, err := c.Commit(within(t, 20*time.Second), "servers", q, 3); err == nil || !rocketmq.IsRetriable(err) {
		t.Errorf("a commit at a dead broker: %v", err)
	}
	if err := p.Brokers[0].Start(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	until(t, 40*time.Second, "the member is known again", func() (bool, string) {
		ids, err := c.Members(t.Context(), "servers", topic)
		return err == nil && len(ids) == 1, asJSON(ids)
	})
	checkWholeTopic(t, c, topic, 11)
}

func checkWholeTopic(t *testing.T, c *rocketmq.Client, topic string, n int) {
	t.Helper()
	byText(t, readAll(t, c, "servers", topic, n))
}
