package rocketmq

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

func out(body string) *OutgoingMessage { return &OutgoingMessage{Topic: "T", Body: []byte(body)} }

// stores answers sends as a broker does.
func stores(req *wire.Command) *wire.Command {
	var h wire.SendRequest
	if err := wire.DecodeFields(req.Ext, &h); err != nil {
		return wire.NewResponse(req, wire.RespSystemError, err.Error())
	}
	id := h.QueueID
	resp := wire.NewResponse(req, wire.RespSuccess, "")
	resp.Ext = wire.EncodeFields(&wire.SendResponse{OffsetMessageID: "O1,O2,O3", QueueID: id, QueueOffset: 100})
	return resp
}

func sent(t *testing.T, s *server, code wire.RequestCode) []*wire.SendRequest {
	t.Helper()
	var list []*wire.SendRequest
	for _, cmd := range s.requests(code) {
		h := &wire.SendRequest{Op: code}
		if err := wire.DecodeFields(cmd.Ext, h); err != nil {
			t.Fatal(err)
		}
		list = append(list, h)
	}
	return list
}

func TestSendWritesTheMessage(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		broker.on(wire.ReqSendMessageV2, stores)
		c := n.start(t, nil)
		m := out("hello")
		m.Tag, m.Keys, m.Flag, m.DelayLevel, m.Properties = "tag", []string{"k1", "k2"}, 7, 3, map[string]string{"p": "v", "TAGS": "overruled"}
		r, err := c.Send(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		h := sent(t, broker, wire.ReqSendMessageV2)[0]
		got := wire.PropertyMap([]byte(h.Properties.Value))
		want := map[string]string{"TAGS": "tag", "KEYS": "k1 k2", "DELAY": "3", "p": "v", "WAIT": "true", "UNIQ_KEY": r.MessageID}
		if fmt.Sprint(got) != fmt.Sprint(want) || len(r.MessageID) != 32 && len(r.MessageID) != 56 {
			t.Errorf("properties %v, want %v", got, want)
		}
		if h.Topic != "T" || h.Flag != 7 || h.SysFlag != 0 || h.Batch.Value || h.BornMillis == 0 || h.DefaultTopic != wire.DefaultTopic || h.ProducerGroup == "" {
			t.Errorf("header %+v", h)
		}
		if body := broker.requests(wire.ReqSendMessageV2)[0].Body; string(body) != "hello" {
			t.Errorf("body %q", body)
		}
		if r.Status != SendOK || r.Queue != queue("a", h.QueueID) || r.Offset != 100 || r.OffsetMessageID != "O1" {
			t.Errorf("result %+v", r)
		}
	})
}

func TestSendStatuses(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		for code, want := range map[wire.ResponseCode]SendStatus{
			wire.RespSuccess: SendOK, wire.RespFlushDiskTimeout: SendFlushDiskTimeout,
			wire.RespFlushSlaveTimeout: SendFlushSlaveTimeout, wire.RespSlaveNotAvailable: SendSlaveNotAvailable,
		} {
			broker.on(wire.ReqSendMessageV2, func(req *wire.Command) *wire.Command {
				resp := stores(req)
				resp.Code = int32(code)
				return resp
			})
			if r, err := c.Send(t.Context(), out("x")); err != nil || r.Status != want {
				t.Errorf("%s: %+v, %v", code, r, err)
			}
		}
		if n := len(broker.requests(wire.ReqSendMessageV2)); n != 4 {
			t.Errorf("%d sends: what is stored was sent again", n)
		}
	})
}

func TestSendRefusesBadMessages(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		other := sdk.Queue{Topic: "U", Broker: "a"}
		for name, edit := range map[string]func(*OutgoingMessage){
			"no body":             func(m *OutgoingMessage) { m.Body = nil },
			"body too long":       func(m *OutgoingMessage) { m.Body = make([]byte, maxMessageSize+1) },
			"no topic":            func(m *OutgoingMessage) { m.Topic = "" },
			"bad topic":           func(m *OutgoingMessage) { m.Topic = "a b" },
			"RocketMQ's topic":    func(m *OutgoingMessage) { m.Topic = wire.ScheduleTopic },
			"two delays":          func(m *OutgoingMessage) { m.Delay, m.DelayLevel = time.Second, 1 },
			"negative delay":      func(m *OutgoingMessage) { m.Delay = -1 },
			"no such level":       func(m *OutgoingMessage) { m.DelayLevel = 19 },
			"blank in a key":      func(m *OutgoingMessage) { m.Keys = []string{"a b"} },
			"separator":           func(m *OutgoingMessage) { m.Properties = map[string]string{"a": "b\x01c"} },
			"empty value":         func(m *OutgoingMessage) { m.Properties = map[string]string{"a": ""} },
			"properties too long": func(m *OutgoingMessage) { m.Properties = map[string]string{"a": strings.Repeat("x", 33<<10)} },
			"foreign queue":       func(m *OutgoingMessage) { m.Queue = &other },
		} {
			m := out("x")
			edit(m)
			if _, err := c.Send(t.Context(), m); !errors.Is(err, ErrInvalidMessage) || !IsFatal(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if len(broker.requests(wire.ReqSendMessageV2)) != 0 {
			t.Error("a bad message was sent")
		}
	})
}

func TestSendRetriesElsewhereByCode(t *testing.T) {
	again := []wire.ResponseCode{17, 14, 1, 2, 16, 204, 205, 1500} // remoting-protocol.md 2.2
	given := []wire.ResponseCode{13, 3, 23}
	for i, code := range append(slices.Clone(again), given...) {
		bubbletest.Run(t, func(t *testing.T) {
			n, ns, a := one(t)
			b := n.add("b:1")
			ns.serveRoutes(map[string]*wire.TopicRoute{"T": routeTo("a", "b")})
			a.on(wire.ReqSendMessageV2, refuse(code, "no"))
			b.on(wire.ReqSendMessageV2, stores)
			c := n.start(t, nil)
			r, err := c.Send(t.Context(), out("x"))
			if want := i < len(again); (err == nil) != want || want && r.Queue.Broker != "b" {
				t.Errorf("%s: %+v, %v", code, r, err)
			}
			if err == nil {
				first := sent(t, a, wire.ReqSendMessageV2)[0].Properties.Value
				if first != sent(t, b, wire.ReqSendMessageV2)[0].Properties.Value {
					t.Errorf("%s: the retry is another message", code)
				}
			}
		})
	}
}

func TestSendAvoidsABrokerThatFailed(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, a := one(t)
		b := n.add("b:1")
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": routeTo("a", "b")})
		a.set(absent)
		b.on(wire.ReqSendMessageV2, stores)
		c := n.start(t, nil)
		for range 20 {
			if _, err := c.Send(t.Context(), out("x")); err != nil {
				t.Fatal(err)
			}
		}
		if dials := n.dialed("a:1"); dials > 3 {
			t.Errorf("%d attempts at the broker that is down", dials)
		}
		a.on(wire.ReqSendMessageV2, stores)
		a.set(up)
		wait(31 * time.Second)
		for range 8 {
			if _, err := c.Send(t.Context(), out("x")); err != nil {
				t.Fatal(err)
			}
		}
		if len(a.requests(wire.ReqSendMessageV2)) == 0 {
			t.Error("the broker is avoided for ever")
		}
	})
}

func TestSendWithoutAnyBrokerFailsInTime(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		broker.set(absent)
		c := n.start(t, nil)
		start := time.Now()
		if _, err := c.Send(t.Context(), out("x")); !IsRetriable(err) || IsUnknownOutcome(err) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took > 15*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestRoundRobinAndShardingKeys(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, a := one(t)
		b := n.add("b:1")
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": routeTo("a", "b")})
		a.on(wire.ReqSendMessageV2, stores)
		b.on(wire.ReqSendMessageV2, stores)
		c := n.start(t, nil)
		used := map[sdk.Queue]int{}
		for range 16 {
			r, err := c.Send(t.Context(), out("x"))
			if err != nil {
				t.Fatal(err)
			}
			used[r.Queue]++
		}
		if len(used) != 8 || used[queue("b", 3)] != 2 {
			t.Errorf("round robin used %v", used)
		}
		// The queue of Java's SelectMessageQueueByHash: |hashCode % 8| over the sorted queues; "order" hashes to 106006350.
		for key, want := range map[string]sdk.Queue{"order": queue("b", 2), "TagA": queue("b", 3), "TAG_VIP_USER_1234567890": queue("a", 0)} {
			for range 3 {
				m := out("x")
				m.ShardingKey = key
				r, err := c.Send(t.Context(), m)
				if err != nil || r.Queue != want {
					t.Errorf("key %s went to %s (%v), want %s", key, r.Queue, err, want)
				}
			}
		}
	})
}

func TestJavaIndexNeverLeavesTheQueues(t *testing.T) {
	for _, key := range []string{"polygenelubricants", "", "a", "订单"} { // the first hashes to math.MinInt32
		for n := 1; n < 20; n++ {
			if i := javaIndex(key, n); i < 0 || i >= n {
				t.Errorf("javaIndex(%q, %d) = %d", key, n, i)
			}
		}
	}
	if wire.TagHash("polygenelubricants") != math.MinInt32 {
		t.Error("the test's key lost its point")
	}
}

func TestShardedSendStaysAtItsQueue(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, a := one(t)
		b := n.add("b:1")
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": routeTo("a", "b")})
		for _, s := range []*server{a, b} {
			s.on(wire.ReqSendMessageV2, refuse(wire.RespSystemBusy, ""))
		}
		c := n.start(t, nil)
		m := out("x")
		m.ShardingKey = "order"
		if _, err := c.Send(t.Context(), m); !IsRetriable(err) {
			t.Errorf("got %v", err)
		}
		if na, nb := len(a.requests(wire.ReqSendMessageV2)), len(b.requests(wire.ReqSendMessageV2)); na != 0 || nb != 3 {
			t.Errorf("sent %d times to a, %d to b; want 0 and 3", na, nb)
		}
	})
}

func TestCompression(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		broker.on(wire.ReqSendMessageV2, stores)
		c := n.start(t, nil)
		long := strings.Repeat("abc", 2000)
		for i, body := range []string{long, long[:4096], long} {
			if _, err := c.Send(t.Context(), out(body)); err != nil {
				t.Fatal(err)
			}
			got := broker.requests(wire.ReqSendMessageV2)[i].Body
			flag := sent(t, broker, wire.ReqSendMessageV2)[i].SysFlag
			if len(body) <= 4096 {
				if flag != 0 || string(got) != body {
					t.Errorf("a short body was changed (flag %x)", flag)
				}
				continue
			}
			r, err := zlib.NewReader(bytes.NewReader(got))
			if err != nil {
				t.Fatal(err)
			}
			if plain, err := io.ReadAll(r); err != nil || string(plain) != body || flag != 0x301 {
				t.Errorf("flag %x, %d bytes, %v", flag, len(plain), err)
			}
		}
	})
}

func TestTimerNeedsABrokerThatKnowsIt(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		broker.on(wire.ReqSendMessageV2, stores)
		c := n.start(t, nil)
		m := out("x")
		m.Delay = 90 * time.Second
		if _, err := c.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		p := wire.PropertyMap([]byte(sent(t, broker, wire.ReqSendMessageV2)[0].Properties.Value))
		if p[wire.PropTimerDelayMillis] != "90000" {
			t.Errorf("properties %v", p)
		}
		old, _, oldBroker := one(t)
		oldBroker.version = wire.Version4_9_7
		c = old.start(t, nil)
		join(t, c, spec("G")) // the version is known from here
		if _, err := c.Send(t.Context(), m); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "V4_9_7") {
			t.Errorf("a 4.9 broker would deliver at once: %v", err)
		}
	})
}

func TestNewTopicIsCreatedByItsFirstMessage(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, broker := one(t)
		broker.on(wire.ReqSendMessageV2, stores)
		c := n.start(t, nil)
		m := out("x")
		m.Topic = "New"
		if _, err := c.Send(t.Context(), m); !errors.Is(err, ErrTopicNotFound) || !strings.Contains(err.Error(), "create it") {
			t.Errorf("without automatic creation: %v", err)
		}
		ns.serveRoutes(map[string]*wire.TopicRoute{wire.DefaultTopic: routeTo("a")})
		if r, err := c.Send(t.Context(), m); err != nil || r.Queue.Topic != "New" {
			t.Errorf("%+v, %v", r, err)
		}
		if h := sent(t, broker, wire.ReqSendMessageV2)[0]; h.DefaultQueues != 4 || h.DefaultTopic != wire.DefaultTopic {
			t.Errorf("sent %+v", h)
		}
	})
}

func TestRetryTopicSendCarriesItsCounts(t *testing.T) { // RT-P04
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		broker.on(wire.ReqSendMessageV2, stores)
		c := n.start(t, nil)
		if _, err := c.Queues(t.Context(), "T"); err != nil {
			t.Fatal(err)
		}
		q := sdk.Queue{Topic: "%RETRY%G", Broker: "a"}
		m := &OutgoingMessage{Topic: q.Topic, Queue: &q, Body: []byte("x"), DelayLevel: 2, Properties: map[string]string{
			wire.PropReconsumeTime: "3", wire.PropMaxReconsumeTimes: "16", wire.PropRetryTopic: "T", wire.PropUniqueKey: "KEPT",
		}}
		r, err := c.Send(t.Context(), m)
		if err != nil || r.MessageID != "KEPT" {
			t.Fatalf("%+v, %v", r, err)
		}
		h := sent(t, broker, wire.ReqSendMessageV2)[0]
		p := wire.PropertyMap([]byte(h.Properties.Value))
		if h.ReconsumeTimes.Value != 3 || h.MaxReconsumeTimes.Value != 16 || p[wire.PropReconsumeTime] != "3" || p[wire.PropDelayLevel] != "2" || p[wire.PropRetryTopic] != "T" {
			t.Errorf("sent %+v with %v", h, p)
		}
		if h.ProducerGroup != "G" { // access control asks for the right on the group that the sender names
			t.Errorf("sent to the retry topic of G as group %s", h.ProducerGroup)
		}
	})
}

func TestBatch(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		broker.on(wire.ReqSendMessageV2, stores)
		broker.on(wire.ReqSendBatchMessage, stores)
		c := n.start(t, nil)
		ms := []*OutgoingMessage{out("one"), out("two"), out("late"), out("three")}
		ms[1].Tag = "tag"
		ms[2].DelayLevel = 1
		results, err := c.SendBatch(t.Context(), "T", ms)
		if err != nil {
			t.Fatal(err)
		}
		batches := sent(t, broker, wire.ReqSendBatchMessage)
		if len(batches) != 1 || len(broker.requests(wire.ReqSendMessageV2)) != 2 {
			t.Fatalf("%d batches, %d single sends", len(batches), len(broker.requests(wire.ReqSendMessageV2)))
		}
		h := batches[0]
		if !h.Batch.Value || strings.Contains(h.Properties.Value, wire.PropUniqueKey) {
			t.Errorf("header %+v", h)
		}
		i := 0
		for part, err := range wire.BatchParts(broker.requests(wire.ReqSendBatchMessage)[0].Body) {
			p := wire.PropertyMap(part.Properties)
			if err != nil || string(part.Body) != string(ms[i].Body) || p[wire.PropUniqueKey] != results[i].MessageID {
				t.Errorf("part %d: %q %v, %v", i, part.Body, p, err)
			}
			i++
		}
		ids := map[string]bool{}
		for i, r := range results {
			if r.Status != SendOK {
				t.Errorf("message %d: %+v", i, r)
			}
			ids[r.MessageID] = true
		}
		if len(ids) != 4 || results[1].Offset != 101 || results[1].OffsetMessageID != "O2" {
			t.Errorf("results %+v", results)
		}
	})
}

func TestBatchTellsWhatFailed(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, a := one(t)
		b := n.add("b:1")
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": routeTo("a", "b")})
		a.on(wire.ReqSendBatchMessage, stores)
		b.on(wire.ReqSendBatchMessage, refuse(wire.RespMessageIllegal, "no"))
		c := n.start(t, nil)
		var ms []*OutgoingMessage
		for i, broker := range []string{"a", "b", "a", "b"} {
			m := out(fmt.Sprint(i))
			q := queue(broker, 0)
			m.Queue = &q
			ms = append(ms, m)
		}
		ms = append(ms, &OutgoingMessage{Topic: "T"}, &OutgoingMessage{Topic: "U", Body: []byte("x")})
		results, err := c.SendBatch(t.Context(), "T", ms)
		if err == nil || !errors.Is(err, ErrInvalidMessage) {
			t.Errorf("error %v", err)
		}
		for i, want := range []SendStatus{SendOK, 0, SendOK, 0, 0, 0} {
			if results[i].Status != want {
				t.Errorf("message %d: %+v, want status %d", i, results[i], want)
			}
		}
	})
}

func TestBatchesAreCut(t *testing.T) {
	var l lane
	for i := range 3 {
		l.add(indexed{&outgoing{topic: "T", body: make([]byte, 600<<10)}, i})
	}
	for i := range batchParts + 1 {
		l.add(indexed{&outgoing{topic: "T", body: []byte("x")}, i})
	}
	var sizes []int
	for _, chunk := range l.chunks {
		sizes = append(sizes, len(chunk))
	}
	if want := []int{1, 1, batchParts, 2}; !slices.Equal(sizes, want) {
		t.Errorf("chunks of %v, want %v", sizes, want)
	}
}

func TestCreateTopicAndTables(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, broker := one(t)
		ns.on(wire.ReqGetClusterInfo, answerBody(t, &wire.ClusterInfo{Brokers: map[string]wire.BrokerData{
			"a": {Name: "a", Addrs: wire.IDTable[string]{0: "a:1"}}, "orphan": {Name: "orphan", Addrs: wire.IDTable[string]{1: "o:1"}},
		}}))
		ns.on(wire.ReqGetAllTopics, answerBody(t, &wire.TopicList{Topics: []string{"T"}}))
		c := n.start(t, nil)
		if err := c.CreateTopic(t.Context(), "T2", 8, 0); err != nil {
			t.Fatal(err)
		}
		got := broker.requests(wire.ReqUpdateAndCreateTopic)[0].Ext
		if got.Get("topic") != "T2" || got.Get("readQueueNums") != "8" || got.Get("perm") != "6" {
			t.Errorf("asked %v", got)
		}
		if topics, err := c.Topics(t.Context()); err != nil || !slices.Equal(topics, []string{"T"}) {
			t.Errorf("%v, %v", topics, err)
		}
		if _, err := c.Queues(t.Context(), "T"); err != nil {
			t.Fatal(err)
		}
		broker.on(wire.ReqGetConsumerConnections, refuse(wire.RespConsumerNotOnline, ""))
		if _, err := c.ConsumerConnections(t.Context(), "a", "G"); !errors.Is(err, ErrNoMembers) {
			t.Errorf("connections of an offline group: %v", err)
		}
		broker.on(wire.ReqGetConsumeStats, answerBody(t, &wire.ConsumeStats{Offsets: wire.QueueTable[wire.ConsumeOffset]{messageQueue(queue("a", 0)): {BrokerOffset: 9}}}))
		if stats, err := c.ConsumeStats(t.Context(), "a", "G", ""); err != nil || stats.Offsets[messageQueue(queue("a", 0))].BrokerOffset != 9 {
			t.Errorf("%+v, %v", stats, err)
		}
		broker.on(wire.ReqGetTopicStats, answerBody(t, &wire.TopicStats{Offsets: wire.QueueTable[wire.TopicOffset]{messageQueue(queue("a", 0)): {MaxOffset: 9}}}))
		if stats, err := c.TopicStats(t.Context(), "a", "T"); err != nil || stats.Offsets[messageQueue(queue("a", 0))].MaxOffset != 9 {
			t.Errorf("%+v, %v", stats, err)
		}
	})
}

func TestAnEarlierUnknownOutcomeIsNotForgotten(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		broker.on(wire.ReqSendMessageV2, func(*wire.Command) *wire.Command {
			broker.kill() // it may have stored the message
			return nil
		})
		_, err := c.Send(t.Context(), out("x"))
		if _, unsent := errors.AsType[*UnreachableError](err); !unsent || !IsUnknownOutcome(err) {
			t.Errorf("the last attempt reached nobody, the first may have stored: %v", err)
		}
	})
}

// A message without a body is stored somewhere although no producer of ours sends one. When a broker has lost the original
// it goes to the retry or dead-letter topic anew: as zlib's form of nothing, since a frame without a body is refused.
func TestCopyOfAMessageWithoutABody(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		broker.on(wire.ReqSendMessageV2, stores)
		c := n.start(t, nil)
		if _, err := c.Queues(t.Context(), "T"); err != nil {
			t.Fatal(err)
		}
		for i, topic := range []string{wire.RetryTopic("G"), wire.DLQTopic("G")} {
			q := sdk.Queue{Topic: topic, Broker: "a"}
			if _, err := c.Send(t.Context(), &OutgoingMessage{Topic: topic, Queue: &q, Properties: map[string]string{"p": "v"}}); err != nil {
				t.Fatal(err)
			}
			h, body := sent(t, broker, wire.ReqSendMessageV2)[i], broker.requests(wire.ReqSendMessageV2)[i].Body
			m := wire.Message{SysFlag: h.SysFlag, Body: body}
			if got, err := wire.NewInflater(10).AppendBody(nil, &m); len(body) == 0 || !m.IsCompressed() || err != nil || len(got) != 0 {
				t.Errorf("%s: stored %x with flags %x, read as %q, %v", topic, body, h.SysFlag, got, err)
			}
		}
		q := sdk.Queue{Topic: wire.RetryTopic("G"), Broker: "a"}
		if _, err := c.Send(t.Context(), &OutgoingMessage{Topic: q.Topic, Queue: &q, Body: make([]byte, maxMessageSize+1)}); err != nil {
			t.Errorf("a message that was stored with a long body: %v", err)
		}
		if _, err := c.Send(t.Context(), out("")); !errors.Is(err, ErrInvalidMessage) {
			t.Errorf("a new message without a body: %v", err)
		}
	})
}
