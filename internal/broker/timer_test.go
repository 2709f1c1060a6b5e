package broker_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func TestTimerMessages_deliverWhenDue(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{IdleTimeout: 100 * time.Hour}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		c := dial(t, net.DialContext, b.Address(), "c1")
		start := time.Now()
		at := func(d time.Duration) string { return strconv.FormatInt(start.Add(d).UnixMilli(), 10) }
		for body, properties := range map[string]string{
			"2s": "TIMER_DELAY_SEC\x012\x02", "1.5s": "TIMER_DELAY_MS\x011500\x02", "2.5s": "TIMER_DELIVER_MS\x01" + at(2500*time.Millisecond) + "\x02",
			"72h": "TIMER_DELAY_SEC\x01259200\x02", "past": "TIMER_DELIVER_MS\x01" + at(-time.Hour) + "\x02",
		} {
			if a := c.send("T", 1, body, properties, nil); a.Code != 0 {
				t.Errorf("%s: %d %q", body, a.Code, a.Remark)
			}
		}
		tooLate := c.send("T", 1, "x", "TIMER_DELAY_SEC\x01345600\x02", nil)
		if tooLate.ResponseCode() != wire.RespMessageIllegal {
			t.Errorf("beyond three days: %d %q", tooLate.Code, tooLate.Remark)
		}
		for offset, want := range []struct {
			body string
			at   time.Duration
		}{{"past", 0}, {"1.5s", 1500 * time.Millisecond}, {"2s", 2 * time.Second}, {"2.5s", 2500 * time.Millisecond}, {"72h", 72 * time.Hour}} {
			a := c.await(c.start(wire.ReqPullMessage, pullFields("G", "T", 1, int64(offset), 80*time.Hour), nil), 90*time.Hour)
			m := decodeAll(t, a.Body)
			if string(m[0].Body) != want.body || time.Since(start) != want.at {
				t.Errorf("%s after %v, want %s after %v", m[0].Body, time.Since(start), want.body, want.at)
			}
		}
		if n := b.Delayed(); n != 0 {
			t.Errorf("%d messages still wait", n)
		}
	})
}
