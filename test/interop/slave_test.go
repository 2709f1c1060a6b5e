package interop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/remoting"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/test/interop/cluster"
	"github.com/streamd/streamd/test/interop/ledger"
)

// TestSlave_readsOnWhileTheMasterIsAway kills the master of a master and its slave in the middle of a backlog. streamd reads the
// rest from the slave; what only a master takes (commits, dead letters, outputs) waits and says so, and is made good when the
// master is back. Then the master is gone for good, and its slave takes its place. Nothing is lost, and nobody handles anything
// twice.
func TestSlave_readsOnWhileTheMasterIsAway(t *testing.T) {
	t.Parallel()
	// A member takes 20 s for them: the kill comes in the middle on a slow machine too.
	const n, rejects = 2000, 1950 // messages, and which is rejected
	const emitted = 160           // messages of the other topic, each with an output
	settings := quickRetries()
	settings["slaveReadEnable"] = "true"
	asMaster := maps.Clone(settings)
	asMaster["brokerRole"], asMaster["brokerIP2"] = "ASYNC_MASTER", "127.0.0.1"
	p := newPlace(t, cluster.Options{Broker: asMaster})
	master := p.Brokers[0]
	slave, err := p.RunSlave(within(t, patience), master, settings)
	if err != nil {
		t.Fatal(err)
	}
	topic, other, outputs := p.topic(t, "Slaves", 2), p.topic(t, "SlaveInputs", 1), p.topic(t, "SlaveOutputs", 1)
	c := newClient(t, p.Addr)
	var bodies []string
	for i := range n {
		word := "ok"
		if i == rejects {
			word = "reject"
		}
		bodies = append(bodies, fmt.Sprint(word, " ", i))
		send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Body: []byte(bodies[i])})
	}
	replicated(t, p.Addr, master, slave, topic, n)

	keys := "window: {messages: 20}\nbatch: {max: 4}\nconcurrency: 4\npull: {max: 8}\n" + quickLevels
	emits := p.streamd(t, stream{group: "slave-emits", topic: other, keys: keys, handler: "slow: 500ms, emit: " + outputs}).ready(t)
	reads := p.streamd(t, stream{group: "slave-reads", topic: topic, keys: keys, handler: "slow: 50ms"}).ready(t)
	reads.handled(t, 40, time.Minute)
	sendN(t, c, other, "in", emitted)
	replicated(t, p.Addr, master, slave, other, emitted)
	master.Kill()
	before := len(ledger.Handled(p.entries(t, reads)))
	if before > rejects-100 {
		t.Fatalf("%d of %d messages are handled already: the kill proves nothing", before, n)
	}
	reads.handled(t, n-1, time.Minute)
	t.Logf("%d messages were handled before the master died, all others from its slave", before)
	waits(t, reads, string(runtime.HoldCommit))
	waits(t, reads, string(runtime.HoldSettle))
	waits(t, emits, string(runtime.HoldSettle))
	if _, err := c.Send(within(t, 20*time.Second), &rocketmq.OutgoingMessage{Topic: topic, Body: []byte("late")}); err == nil || !strings.Contains(err.Error(), "master") {
		t.Errorf("a send without a master: %v", err)
	}

	if err := master.Start(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	if m := readAll(t, c, "slave-reads", wire.DLQTopic("slave-reads"), 1)[0]; m.Text != bodies[rejects] {
		t.Errorf("dead letter %q", m.Text)
	}
	emits.handled(t, emitted, time.Minute)
	for _, group := range []string{"slave-reads", "slave-emits"} {
		until(t, time.Minute, "the offsets of "+group+" are stored", func() (bool, string) {
			lag, err := p.lag(t, group)
			return err == nil && lag == 0, fmt.Sprint(lag, err)
		})
	}
	t.Logf("%s after the master's return everything is stored", time.Since(back).Round(100*time.Millisecond))
	stored := map[string]bool{} // one whose answer was lost with the master is there twice
	for _, m := range readAllNow(t, c, outputs) {
		stored[m.Text] = true
	}
	if len(stored) != emitted {
		t.Errorf("%d of %d outputs are stored", len(stored), emitted)
	}
	p.promoted(t, c, master, slave, reads, topic)
	for _, m := range []*member{reads, emits} {
		for body, times := range ledger.Handled(p.entries(t, m)) {
			if times != 1 {
				t.Errorf("%s: %q was handled %d times", m.Name, body, times)
			}
		}
		m.stop(t)
	}
}

// promoted kills the master once its slave has everything, also the offsets of reads, and makes the slave the master. reads goes on
// there, and so does the producer c.
func (p *place) promoted(t *testing.T, c *rocketmq.Client, master, slave *cluster.Broker, reads *member, topic string) {
	t.Helper()
	const more = 40
	queues, err := c.Queues(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	there := throughSlave(t, p.Addr, master, slave)
	until(t, time.Minute, "the slave has the offsets", func() (bool, string) {
		ctx := within(t, 10*time.Second)
		for _, q := range queues {
			want, _, err := c.Committed(ctx, "slave-reads", q)
			got, _, e := there.Committed(ctx, "slave-reads", q)
			if err != nil || e != nil || got != want {
				return false, fmt.Sprint(q, " ", got, " of ", want, err, e)
			}
		}
		return true, ""
	})
	handled := len(ledger.Handled(p.entries(t, reads)))
	master.Kill()
	if err := p.Promote(within(t, patience), slave); err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	try := 0 // one without an answer may be stored, and is another message
	until(t, time.Minute, "the producer finds the new master", func() (bool, string) {
		try++
		_, err := c.Send(within(t, 10*time.Second), &rocketmq.OutgoingMessage{Topic: topic, Body: fmt.Append(nil, "promoted, try ", try)})
		return err == nil, fmt.Sprint(err)
	})
	sendN(t, c, topic, "promoted", more)
	reads.handled(t, handled+1+more, time.Minute)
	until(t, time.Minute, "the offsets of slave-reads are stored by the new master", func() (bool, string) {
		lag, err := p.lag(t, "slave-reads")
		return err == nil && lag == 0, fmt.Sprint(lag, err)
	})
	t.Logf("%s after the slave was made the master everything is handled and stored", time.Since(at).Round(100*time.Millisecond))
}

// throughSlave is a client that meets the slave where it means the master.
func throughSlave(t *testing.T, nameServer string, master, slave *cluster.Broker) *rocketmq.Client {
	t.Helper()
	return newClient(t, nameServer, func(cfg *rocketmq.Config) {
		cfg.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			if addr == master.Addr {
				addr = slave.Addr
			}
			return remoting.DialTCP(ctx, addr)
		}
	})
}

// replicated waits until the slave has n messages of a topic and gives them to readers: its topics come some seconds later.
func replicated(t *testing.T, nameServer string, master, slave *cluster.Broker, topic string, n int64) {
	t.Helper()
	c := throughSlave(t, nameServer, master, slave)
	until(t, time.Minute, "the slave has everything", func() (bool, string) {
		ctx := within(t, 10*time.Second)
		queues, err := c.Queues(ctx, topic)
		var sum int64
		for _, q := range queues {
			ends, e := c.MaxOffset(ctx, q)
			err, sum = errors.Join(err, e, readable(ctx, c, q, ends)), sum+ends
		}
		return err == nil && sum == n, fmt.Sprint(sum, err)
	})
}

// readable tries to read the last message of a queue.
func readable(ctx context.Context, c *rocketmq.Client, q sdk.Queue, ends int64) error {
	ms, _, err := read(ctx, c, "slave-look", q, max(0, ends-1))
	if err == nil && len(ms) == 0 {
		err = errors.New("nothing can be read")
	}
	return err
}

// waits waits until the status of a member tells of what waits for the broker.
func waits(t *testing.T, m *member, kind string) {
	t.Helper()
	until(t, time.Minute, m.Name+" says what waits", func() (bool, string) {
		text, err := m.get(t.Context(), "/api/v1/status")
		if err != nil {
			return false, err.Error()
		}
		if i := strings.Index(text, kind); i >= 0 {
			t.Logf("%s: %.400s", m.Name, text[i:])
			return true, ""
		}
		return false, text
	})
}
