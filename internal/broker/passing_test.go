package broker_test

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// TestSysFlag_passesUnchanged: what a producer says of its body, compression and the kind of it, is the consumer's to read
// (vectors/README.md 5.7).
func TestSysFlag_passesUnchanged(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	c := dialTCP(t, b, "c1")
	flags := []int32{0, 0x301, 0x101, 0x201, 0x001, 0x2, 0x1 << 12}
	for _, flag := range flags {
		if a := c.send("T", 0, "body as it came", "", ext{"f": flag, "h": 9}); a.Code != 0 {
			t.Fatalf("flag %#x: %d %q", flag, a.Code, a.Remark)
		}
	}
	m := decodeAll(t, c.pull("G", "T", 0, 0).Body)
	if len(m) != len(flags) {
		t.Fatalf("%d messages", len(m))
	}
	for i, flag := range flags {
		if m[i].SysFlag != flag || m[i].Flag != 9 || string(m[i].Body) != "body as it came" {
			t.Errorf("sent %#x: %#x, flag %d, body %q", flag, m[i].SysFlag, m[i].Flag, m[i].Body)
		}
	}
}

// TestSend_oddFields has what clients of other versions and languages leave out or put in.
func TestSend_oddFields(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	c := dialTCP(t, b, "c1")
	long := func(more ext) ext {
		e := ext{
			"producerGroup": "PG", "topic": "T", "defaultTopic": "TBW102", "defaultTopicQueueNums": 4, "queueId": 1, "sysFlag": 0,
			"bornTimestamp": 5, "flag": 3, "properties": "TAGS\x01a\x02", "reconsumeTimes": 2, "unitMode": true, "maxReconsumeTimes": 4,
			"bname": "broker-a", "someNewField": "x",
		}
		maps.Copy(e, more)
		return e
	}
	runSteps(t, c, []step{
		{"whole", wire.ReqSendMessage, long(nil), "one", 0, "", nil, nil, map[string]string{"queueId": "1", "queueOffset": "0", "TRACE_ON": "true"}},
		{"least", wire.ReqSendMessageV2, ext{"b": "T", "e": 1}, "two", 0, "", nil, nil, map[string]string{"queueOffset": "1"}},
		{"numbers that are none", wire.ReqSendMessageV2, ext{"b": "T", "e": 1, "d": "x", "f": "", "g": "y", "h": "z", "j": "-"}, "three", 0, "", nil, nil, nil},
		{"any queue", wire.ReqSendMessageV2, ext{"b": "T", "e": -1}, "four", 0, "", nil, nil, nil},
		{"a queue too many", wire.ReqSendMessageV2, ext{"b": "T", "e": 4}, "x", wire.RespInvalidParameter, "queueId[4] is illegal", nil, nil, nil},
		{"no queue", wire.ReqSendMessageV2, ext{"b": "T"}, "x", 1, "e", nil, nil, nil},
		{"no topic", wire.ReqSendMessageV2, ext{"e": 0}, "x", 1, "b", nil, nil, nil},
		{"no body", wire.ReqSendMessage, long(nil), "", 1, "body", nil, nil, nil},
		{"properties too long", wire.ReqSendMessage, long(ext{"properties": "k\x01" + strings.Repeat("x", 40_000) + "\x02"}), "x", wire.RespMessageIllegal, "32KB", nil, nil, nil},
		{"a batch that is none", wire.ReqSendMessageV2, ext{"b": "T", "e": 1, "m": true}, "not a batch", wire.RespMessageIllegal, "", nil, nil, nil},
	})
	var all []string
	for _, m := range b.Messages("T") {
		if m.Queue == 1 && string(m.Body) != "four" {
			all = append(all, string(m.Body)+":"+m.Tag+":"+strconv.Itoa(int(m.ReconsumeTimes)))
		}
	}
	if got := strings.Join(all, " "); got != "one:a:2 two::0 three::0" {
		t.Errorf("stored %s", got)
	}
}

// TestOneway_ofEveryKind is carried out without an answer, batches included.
func TestOneway_ofEveryKind(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		c := dial(t, net.DialContext, b.Address(), "c1")
		b.CreateTopic("T", 1)
		part, err := (&wire.BatchPart{Body: []byte("part")}).Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		c.oneway(wire.ReqSendMessageV2, ext{"b": "T", "e": 0}, []byte("v2"))
		c.oneway(wire.ReqSendMessage, ext{"topic": "T", "queueId": 0}, []byte("v1"))
		c.oneway(wire.ReqSendBatchMessage, ext{"b": "T", "e": 0, "m": true}, part)
		c.oneway(wire.ReqSendMessageV2, ext{"b": "T", "e": 99}, []byte("refused"))
		c.oneway(9999, nil, nil)
		if a := c.send("T", 0, "awaited", "", nil); a.Code != 0 {
			t.Errorf("after oneways: %+v", a)
		}
		var all []string
		for _, m := range b.Messages("T") {
			all = append(all, string(m.Body))
		}
		if got := strings.Join(all, " "); got != "v2 v1 part awaited" {
			t.Errorf("stored %s", got)
		}
	})
}

// TestResumeCheck asks anew for a transaction that was given up.
func TestResumeCheck(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{MemberTTL: 9 * time.Hour, IdleTimeout: 9 * time.Hour}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		c := dial(t, net.DialContext, b.Address(), "c1")
		ordinary := c.send("T", 0, "x", "", nil).Ext.Get("msgId")
		c.send("T", 2, "half", "UNIQ_KEY\x01H\x02TRAN_MSG\x01true\x02PGROUP\x01PG\x02", ext{"f": 4})
		pause(t, 20*time.Minute)
		given := b.Messages(wire.TransCheckMaxTopic)
		if len(given) != 1 {
			t.Fatalf("given up: %+v", given)
		}
		producerBeat(t, c, "PG")
		c.ok(wire.ReqResumeCheckHalf, ext{"topic": wire.TransCheckMaxTopic, "msgId": given[0].OffsetID}, nil)
		check := c.waitPush(wire.ReqCheckTransactionState)
		if check.Ext.Get("msgId") != "H" {
			t.Errorf("check %+v", check)
		}
		c.ok(wire.ReqEndTransaction, ext{
			"producerGroup": "PG", "tranStateTableOffset": check.Ext.Get("tranStateTableOffset"),
			"commitLogOffset": check.Ext.Get("commitLogOffset"), "commitOrRollback": 8, "fromTransactionCheck": true,
		}, nil)
		if m := b.Messages("T"); len(m) != 2 || string(m[1].Body) != "half" && string(m[0].Body) != "half" {
			t.Errorf("committed: %+v", m)
		}
		runSteps(t, c, []step{
			{"not given up", wire.ReqResumeCheckHalf, ext{"msgId": ordinary}, "", 1, "is no message of TRANS_CHECK_MAX_TIME_TOPIC", nil, nil, nil},
			{"no id", wire.ReqResumeCheckHalf, ext{"msgId": "x"}, "", 1, "", nil, nil, nil},
			{"no field", wire.ReqResumeCheckHalf, nil, "", 1, "msgId", nil, nil, nil},
		})
	})
}
