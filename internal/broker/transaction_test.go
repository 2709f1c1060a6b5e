package broker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func TestTransactions(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{MemberTTL: time.Hour, IdleTimeout: time.Hour}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		c := dial(t, net.DialContext, b.Address(), "c1")
		c.ok(wire.ReqHeartbeat, nil, []byte(`{"clientID":"c1","producerDataSet":[{"groupName":"PG"}],"consumerDataSet":[]}`))
		half := func(id string) ext {
			t.Helper()
			a := c.send("T", 2, id, "UNIQ_KEY\x01"+id+"\x02TRAN_MSG\x01true\x02PGROUP\x01PG\x02", ext{"f": 4})
			if a.Code != 0 {
				t.Fatalf("half message: %d %q", a.Code, a.Remark)
			}
			_, offset, err := wire.ParseOffsetID(a.Ext.Get("msgId"))
			if err != nil {
				t.Fatal(err)
			}
			return ext{
				"producerGroup": "PG", "tranStateTableOffset": a.Ext.Get("queueOffset"), "commitLogOffset": offset, "msgId": id,
				"fromTransactionCheck": false,
			}
		}
		end := func(e ext, outcome int) *wire.Command {
			e["commitOrRollback"] = outcome
			return c.call(wire.ReqEndTransaction, e, nil)
		}
		committed, rolledBack, unknown := half("A"), half("B"), half("C")
		if n := len(b.Messages("T")); n != 0 {
			t.Fatalf("%d half messages can be consumed", n)
		}
		wrong := ext{"producerGroup": "other"}
		for k, v := range committed {
			if k != "producerGroup" {
				wrong[k] = v
			}
		}
		if a := end(wrong, 8); a.Code != 1 || a.Remark != "The producer group wrong" {
			t.Errorf("another group's commit: %d %q", a.Code, a.Remark)
		}
		end(committed, 8)
		end(committed, 8) // A repeated commit stores nothing more.
		end(rolledBack, 12)
		end(rolledBack, 8)
		m := b.Messages("T")
		if len(m) != 1 || m[0].ID != "A" || m[0].Queue != 2 || m[0].SysFlag != wire.SysFlagCommit {
			t.Fatalf("committed: %+v", m)
		}
		start := time.Now()
		check := c.waitPush(wire.ReqCheckTransactionState)
		if d := time.Since(start); d != 6*time.Second {
			t.Errorf("asked after %v", d)
		}
		if got := decodeAll(t, check.Body); string(got[0].Topic) != "T" || got[0].QueueID != 2 || check.Ext.Get("msgId") != "C" {
			t.Errorf("check %+v", check)
		}
		c.waitPush(wire.ReqCheckTransactionState)
		if d := time.Since(start); d != 36*time.Second {
			t.Errorf("asked again after %v", d)
		}
		unknown["fromTransactionCheck"] = true
		end(unknown, 8)
		half("D")
		pause(t, 20*time.Minute)
		synctest.Wait()
		if m := b.Messages("T"); len(m) != 2 || m[1].ID != "C" {
			t.Errorf("after the check: %+v", m)
		}
		if m := b.Messages(wire.TransCheckMaxTopic); len(m) != 1 || m[0].ID != "D" {
			t.Errorf("given up: %+v", m)
		}
	})
}

// TestTransaction_ofATimerMessage ends before the message begins to wait: the timer must not take a half message.
func TestTransaction_ofATimerMessage(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		c := dial(t, net.DialContext, b.Address(), "c1")
		a := c.send("T", 0, "x", "UNIQ_KEY\x01A\x02TRAN_MSG\x01true\x02PGROUP\x01PG\x02TIMER_DELAY_SEC\x0160\x02", ext{"f": 4})
		_, offset, err := wire.ParseOffsetID(a.Ext.Get("msgId"))
		if err != nil {
			t.Fatal(err)
		}
		c.ok(wire.ReqEndTransaction, ext{
			"producerGroup": "PG", "tranStateTableOffset": a.Ext.Get("queueOffset"), "commitLogOffset": offset, "msgId": "A",
			"fromTransactionCheck": false, "commitOrRollback": 8,
		}, nil)
		if n := len(b.Messages("T")); n != 0 || b.Delayed() != 1 {
			t.Errorf("%d messages came before their time, %d wait", n, b.Delayed())
		}
		pause(t, 61*time.Second)
		if m := b.Messages("T"); len(m) != 1 || m[0].ID != "A" {
			t.Errorf("delivered %+v", m)
		}
	})
}

// TestTransaction_givenUpOfATimerMessage is kept at once, and says still where the message was meant to go.
func TestTransaction_givenUpOfATimerMessage(t *testing.T) {
	t.Parallel()
	c := broker.Config{TransactionTimeout: time.Second, TransactionInterval: time.Second}
	inBubble(t, c, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		c := dial(t, net.DialContext, b.Address(), "c1")
		c.send("T", 0, "x", "UNIQ_KEY\x01A\x02TRAN_MSG\x01true\x02PGROUP\x01PG\x02TIMER_DELAY_SEC\x013600\x02", ext{"f": 4})
		pause(t, 30*time.Second)
		m := b.Messages(wire.TransCheckMaxTopic)
		if len(m) != 1 || m[0].Properties[wire.PropRealTopic] != "T" || b.Delayed() != 0 {
			t.Errorf("given up: %+v, %d wait", m, b.Delayed())
		}
	})
}

// TestTransaction_staysImmuneOverARestart: its producers are not asked before the time that it asks for.
func TestTransaction_staysImmuneOverARestart(t *testing.T) {
	t.Parallel()
	onMachine(t, broker.Config{MemberTTL: time.Hour, IdleTimeout: time.Hour}, func(t *testing.T, m *machine) {
		t.Helper()
		sent := time.Now()
		m.dial(t).send("T", 0, "x", "UNIQ_KEY\x01A\x02TRAN_MSG\x01true\x02PGROUP\x01PG\x02CHECK_IMMUNITY_TIME_IN_SECONDS\x0140\x02", ext{"f": 4})
		pause(t, 10*time.Second)
		m.powerLoss(t)
		c := m.dial(t)
		producerBeat(t, c, "PG")
		c.waitPush(wire.ReqCheckTransactionState)
		if d := time.Since(sent); d < 40*time.Second || d > 41*time.Second {
			t.Errorf("asked after %v", d)
		}
	})
}
