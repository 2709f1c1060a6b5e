package rocketmq

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// checks is a producer group whose transactions ended as outcome says.
func checks(group string, outcome Outcome, seen chan<- HalfMessage) ProducerSpec {
	return ProducerSpec{Group: group, Check: func(_ context.Context, h *HalfMessage) Outcome {
		if seen != nil {
			seen <- *h
		}
		return outcome
	}}
}

func joinProducers(t *testing.T, c *Client, spec ProducerSpec) {
	t.Helper()
	if err := c.JoinProducers(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}

// storesHalf answers sends as a broker does that stores half messages from offset on.
func storesHalf(offset int64) func(*wire.Command) *wire.Command {
	return func(req *wire.Command) *wire.Command {
		resp := wire.NewResponse(req, wire.RespSuccess, "")
		resp.Ext = wire.EncodeFields(&wire.SendResponse{OffsetMessageID: fmt.Sprintf("7F00000100002A9F%016X", offset), QueueOffset: 5, TransactionID: wire.Some("tx")})
		return resp
	}
}

func ended(t *testing.T, s *server) []wire.EndTransactionRequest {
	t.Helper()
	var list []wire.EndTransactionRequest
	for _, cmd := range s.requests(wire.ReqEndTransaction) {
		var h wire.EndTransactionRequest
		if err := wire.DecodeFields(cmd.Ext, &h); err != nil {
			t.Fatal(err)
		}
		if oneway := h.Outcome == 0; cmd.IsOneway() != oneway {
			t.Errorf("outcome %d: one-way is %t", h.Outcome, cmd.IsOneway())
		}
		list = append(list, h)
	}
	return list
}

func TestTransactionIsPreparedAndEnded(t *testing.T) {
	for outcome, flag := range map[Outcome]int32{OutcomeCommit: 8, OutcomeRollback: 12, OutcomeUnknown: 0} {
		bubbletest.Run(t, func(t *testing.T) {
			n, _, broker := one(t)
			broker.on(wire.ReqSendMessageV2, storesHalf(7261))
			c := n.start(t, nil)
			joinProducers(t, c, checks("PG", OutcomeUnknown, nil))
			half, err := c.Prepare(t.Context(), "PG", out("x"))
			if err != nil {
				t.Fatal(err)
			}
			h := sent(t, broker, wire.ReqSendMessageV2)[0]
			props := wire.PropertyMap([]byte(h.Properties.Value))
			if h.ProducerGroup != "PG" || h.SysFlag != wire.SysFlagPrepared || props["TRAN_MSG"] != "true" || props["PGROUP"] != "PG" || props["UNIQ_KEY"] != half.MessageID {
				t.Errorf("prepared as %+v, properties %v", h, props)
			}
			if err := c.EndTransaction(t.Context(), half, outcome); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			got := ended(t, broker)
			if len(got) != 1 || got[0].Outcome != flag || got[0].LogOffset != 7261 || got[0].QueueOffset != 5 || got[0].ProducerGroup != "PG" ||
				got[0].MessageID != half.MessageID || got[0].TransactionID.Value != "tx" || got[0].Topic.Value != "T" || got[0].FromCheck != wire.Some(false) {
				t.Errorf("%s ended as %+v", outcome, got)
			}
		})
	}
}

// Brokers hear of the group before they are sent anything of it, and that it goes.
func TestProducerGroupIsHeartbeatAndUnregistered(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		broker.on(wire.ReqSendMessageV2, storesHalf(1))
		c := n.start(t, nil)
		if _, err := c.Prepare(t.Context(), "PG", out("x")); !errors.Is(err, ErrNotJoined) {
			t.Errorf("without the group: %v", err)
		}
		joinProducers(t, c, checks("PG", OutcomeCommit, nil))
		if err := c.JoinProducers(t.Context(), checks("PG", OutcomeCommit, nil)); !errors.Is(err, ErrDuplicateGroup) {
			t.Errorf("joined twice: %v", err)
		}
		if _, err := c.Prepare(t.Context(), "PG", out("x")); err != nil {
			t.Fatal(err)
		}
		first := heartbeats(t, broker)[0]
		if want := []wire.ProducerData{{GroupName: wire.InnerProducerGroup}, {GroupName: "PG"}}; !slices.Equal(first.ProducerDataSet, want) {
			t.Errorf("the first heartbeat tells of %v", first.ProducerDataSet)
		}
		dials := n.dialed("a:1")
		broker.kill()
		broker.set(up)
		wait(3 * time.Second)
		if n.dialed("a:1") == dials {
			t.Error("a lost connection is not made anew: the broker could not ask")
		}
		if err := c.LeaveProducers(t.Context(), "PG"); err != nil {
			t.Fatal(err)
		}
		left := broker.requests(wire.ReqUnregisterClient)
		if len(left) != 1 || left[0].Ext.Get("producerGroup") != "PG" || left[0].Ext.Get("clientID") != "127.0.0.1@me" {
			t.Errorf("unregistered by %v", left)
		}
		if err := c.LeaveProducers(t.Context(), "PG"); !errors.Is(err, ErrNotJoined) {
			t.Errorf("left twice: %v", err)
		}
	})
}

func TestPrepareRefuses(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		joinProducers(t, c, checks("PG", OutcomeCommit, nil))
		for name, edit := range map[string]func(*OutgoingMessage){
			"delay level": func(m *OutgoingMessage) { m.DelayLevel = 3 },
			"delay":       func(m *OutgoingMessage) { m.Delay = time.Second },
			"retry topic": func(m *OutgoingMessage) { m.Topic = wire.RetryTopic("G") },
		} {
			m := out("x")
			edit(m)
			if _, err := c.Prepare(t.Context(), "PG", m); !errors.Is(err, ErrInvalidMessage) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := len(broker.requests(wire.ReqSendMessageV2)); n != 0 {
			t.Errorf("%d sends", n)
		}
		if err := c.JoinProducers(t.Context(), ProducerSpec{Group: "other"}); err == nil {
			t.Error("a group without a check was joined")
		}
	})
}

// An attempt that may have stored the message is not repeated: a second half message would be checked and committed, too.
func TestPrepareIsRepeatedOnlyWhenNothingIsStored(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, a := one(t)
		b := n.add("b:1")
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": routeTo("a", "b")})
		for _, s := range []*server{a, b} {
			s.on(wire.ReqSendMessageV2, storesHalf(1))
		}
		c := n.start(t, nil)
		joinProducers(t, c, checks("PG", OutcomeCommit, nil))
		a.on(wire.ReqSendMessageV2, refuse(wire.RespSystemBusy, "busy"))
		half, err := c.Prepare(t.Context(), "PG", out("x"))
		if err != nil || half.Queue.Broker != "b" {
			t.Fatalf("after a refusal: %+v %v", half, err)
		}
		b.set(silent)
		a.set(silent)
		before := len(a.requests(wire.ReqSendMessageV2)) + len(b.requests(wire.ReqSendMessageV2))
		if _, err := c.Prepare(t.Context(), "PG", out("y")); !IsUnknownOutcome(err) {
			t.Errorf("without an answer: %v", err)
		}
		if n := len(a.requests(wire.ReqSendMessageV2)) + len(b.requests(wire.ReqSendMessageV2)) - before; n != 1 {
			t.Errorf("%d attempts without an answer, want one", n)
		}
		a.set(up)
		b.set(up)
	})
}

func TestLessDurableHalfMessageIsRolledBack(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		broker.on(wire.ReqSendMessageV2, func(req *wire.Command) *wire.Command {
			resp := storesHalf(9)(req)
			resp.Code = int32(wire.RespFlushDiskTimeout)
			return resp
		})
		c := n.start(t, nil)
		joinProducers(t, c, checks("PG", OutcomeCommit, nil))
		if _, err := c.Prepare(t.Context(), "PG", out("x")); err == nil {
			t.Error("prepared, although the broker may lose it")
		}
		if got := ended(t, broker); len(got) != 1 || got[0].Outcome != wire.SysFlagRollback {
			t.Errorf("ended as %+v", got)
		}
	})
}

// question is a broker's 39 about a half message of a group.
func question(t *testing.T, group string, offset int64) *wire.Command {
	t.Helper()
	m := wire.Message{
		Topic: []byte("T"), QueueID: 2, QueueOffset: 4, LogOffset: offset, Body: []byte("x"),
		Properties: []byte("UNIQ_KEY\x01U" + fmt.Sprint(offset) + "\x02PGROUP\x01" + group + "\x02TRANSACTION_CHECK_TIMES\x013\x02"),
	}
	m.BornHost, m.StoreHost = addrPort("127.0.0.1:1"), addrPort("127.0.0.1:1")
	body, err := m.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	cmd := wire.NewRequest(&wire.CheckTransactionRequest{
		Topic: wire.Some(wire.HalfTopic), QueueOffset: 4, LogOffset: offset, TransactionID: wire.Some("tx"), Common: named("a"),
	}, body)
	cmd.Flag |= wire.FlagOneway
	return cmd
}

func TestChecksAreAnswered(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		broker.on(wire.ReqSendMessageV2, storesHalf(1))
		c := n.start(t, nil)
		seen := make(chan HalfMessage, 10)
		joinProducers(t, c, checks("PG", OutcomeCommit, seen))
		joinProducers(t, c, ProducerSpec{Group: "Slow", CheckTimeout: 5 * time.Second, Check: func(context.Context, *HalfMessage) Outcome {
			wait(7 * time.Second) // whatever its context says
			return OutcomeCommit
		}})
		joinProducers(t, c, ProducerSpec{Group: "Panics", Check: func(context.Context, *HalfMessage) Outcome { panic("no") }})
		if _, err := c.Prepare(t.Context(), "PG", out("x")); err != nil { // connects
			t.Fatal(err)
		}
		for i, group := range []string{"PG", "Slow", "Panics", "Foreign"} {
			broker.push(question(t, group, int64(10+i)))
		}
		wait(6 * time.Second)
		if h := <-seen; h.MessageID != "U10" || h.Times != 3 || h.Queue != queue("a", 2) || string(h.Message.Body) != "x" || h.Group != "PG" {
			t.Errorf("asked about %+v", h)
		}
		byOffset := map[int64]wire.EndTransactionRequest{}
		for _, h := range ended(t, broker) {
			byOffset[h.LogOffset] = h
		}
		for offset, want := range map[int64]struct {
			group   string
			outcome int32
		}{10: {"PG", wire.SysFlagCommit}, 11: {"Slow", 0}, 12: {"Panics", 0}} {
			h, ok := byOffset[offset]
			if !ok || h.ProducerGroup != want.group || h.Outcome != want.outcome || h.FromCheck != wire.Some(true) || h.QueueOffset != 4 ||
				h.Topic.Value != wire.HalfTopic || h.TransactionID.Value != "tx" || h.MessageID != fmt.Sprint("U", offset) {
				t.Errorf("offset %d: answered %+v (%t)", offset, h, ok)
			}
		}
		if _, ok := byOffset[13]; ok || len(byOffset) != 3 {
			t.Errorf("a question about a group that is not ours was answered: %v", byOffset)
		}
		wait(2 * time.Second)
	})
}

// recorded is one frame of testdata/vectors of package wire.
type recorded struct {
	Seq         int    `json:"seq"`
	Conn        int    `json:"conn"`
	Dir         string `json:"dir"`
	Client      string `json:"client"`
	Code        int32  `json:"code"`
	RequestCode int32  `json:"request_code"`
	IsResponse  bool   `json:"is_response"`
	Opaque      int32  `json:"opaque"`
	Frame       string `json:"frame_hex"`
}

func (r *recorded) command(t *testing.T) *wire.Command {
	t.Helper()
	frame, err := hex.DecodeString(r.Frame)
	if err != nil {
		t.Fatal(err)
	}
	cmd := new(wire.Command)
	if err := cmd.Decode(frame[wire.PrefixSize:]); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func recordedTransactions(t *testing.T) (all []recorded) {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join("wire", "testdata", "vectors", "transaction.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(z); dec.More(); {
		var r recorded
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// Golden: what this client sends for a half message that was answered as a real broker answered, and for a real broker's
// question, holds every field that the Java client sent then, with the same value.
func TestTransactionsAreWhatJavaSends(t *testing.T) {
	all := recordedTransactions(t)
	prepared, asked := 0, 0
	for i := range all {
		r := &all[i]
		switch {
		case r.Client[:4] != "java" || r.IsResponse:
		case r.Code == int32(wire.ReqSendMessageV2):
			prepared++
			goldenPrepared(t, all, r)
		case r.Code == int32(wire.ReqCheckTransactionState):
			asked += goldenAsked(t, all, r)
		}
	}
	if prepared != 4 || asked != 4 {
		t.Errorf("%d half messages and %d questions, want 4 and 4", prepared, asked)
	}
}

// endOf finds the recorded 37 about a message.
func endOf(t *testing.T, all []recorded, conn int, id string, check bool) *wire.Command {
	t.Helper()
	for i := range all {
		if r := &all[i]; r.Conn == conn && !r.IsResponse && r.Code == int32(wire.ReqEndTransaction) {
			if cmd := r.command(t); cmd.Ext.Get("msgId") == id && cmd.Ext.Get("fromTransactionCheck") == fmt.Sprint(check) {
				return cmd
			}
		}
	}
	return nil
}

func answerTo(t *testing.T, all []recorded, to *recorded) *wire.Command {
	t.Helper()
	for i := range all {
		if r := &all[i]; r.IsResponse && r.Conn == to.Conn && r.Opaque == to.Opaque && r.RequestCode == to.Code {
			return r.command(t)
		}
	}
	return nil
}

func outcomeOf(cmd *wire.Command) Outcome {
	return map[string]Outcome{"8": OutcomeCommit, "12": OutcomeRollback, "0": OutcomeUnknown}[cmd.Ext.Get("commitOrRollback")]
}

func goldenPrepared(t *testing.T, all []recorded, r *recorded) {
	t.Helper()
	bubbletest.Run(t, func(t *testing.T) {
		java := r.command(t)
		var h wire.SendRequest
		if err := wire.DecodeFields(java.Ext, &h); err != nil {
			t.Fatal(err)
		}
		props := wire.PropertyMap([]byte(h.Properties.Value))
		answer, end := answerTo(t, all, r), endOf(t, all, r.Conn, props[wire.PropUniqueKey], false)
		if answer == nil || end == nil {
			t.Fatalf("frame %d: its answer or its end is not recorded", r.Seq)
		}
		n, ns, broker := one(t)
		ns.serveRoutes(map[string]*wire.TopicRoute{h.Topic: {Brokers: []wire.BrokerData{{Name: "broker-a", Addrs: wire.IDTable[string]{0: "a:1"}}}, Queues: []wire.QueueData{{BrokerName: "broker-a", Perm: 6, ReadQueues: 1, WriteQueues: 1}}}})
		broker.on(wire.ReqSendMessageV2, func(req *wire.Command) *wire.Command {
			resp := wire.NewResponse(req, wire.RespSuccess, "")
			resp.Ext = answer.Ext
			return resp
		})
		c := n.start(t, nil)
		joinProducers(t, c, checks(h.ProducerGroup, OutcomeUnknown, nil))
		half, err := c.Prepare(t.Context(), h.ProducerGroup, &OutgoingMessage{
			Topic: h.Topic, Tag: props["TAGS"], Keys: []string{props["KEYS"]}, Body: java.Body, Properties: map[string]string{wire.PropUniqueKey: props[wire.PropUniqueKey]},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.EndTransaction(t.Context(), half, outcomeOf(end)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		mine := broker.requests(wire.ReqSendMessageV2)[0]
		sameFields(t, r.Seq, java.Ext, mine.Ext, "g", "i")
		if got := wire.PropertyMap([]byte(mine.Ext.Get("i"))); fmt.Sprint(got) != fmt.Sprint(props) {
			t.Errorf("frame %d: properties %v, Java's are %v", r.Seq, got, props)
		}
		sameFields(t, r.Seq, end.Ext, broker.requests(wire.ReqEndTransaction)[0].Ext)
	})
}

// goldenAsked plays a recorded question. Its answer may not be recorded: the client was closed.
func goldenAsked(t *testing.T, all []recorded, r *recorded) (played int) {
	t.Helper()
	question := r.command(t)
	end := endOf(t, all, r.Conn, question.Ext.Get("msgId"), true)
	if end == nil {
		return 0
	}
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		broker.on(wire.ReqSendMessageV2, storesHalf(1))
		c := n.start(t, nil)
		joinProducers(t, c, checks(end.Ext.Get("producerGroup"), outcomeOf(end), nil))
		if _, err := c.Prepare(t.Context(), end.Ext.Get("producerGroup"), out("x")); err != nil { // connects
			t.Fatal(err)
		}
		broker.push(question)
		synctest.Wait()
		if got := broker.requests(wire.ReqEndTransaction); len(got) != 1 {
			t.Errorf("frame %d: answered %d times", r.Seq, len(got))
		} else {
			sameFields(t, r.Seq, end.Ext, got[0].Ext)
		}
	})
	return 1
}

// sameFields wants every field of Java's in mine, with the same value. Ours may have more: fields that later versions added.
func sameFields(t *testing.T, seq int, java, mine wire.Fields, except ...string) {
	t.Helper()
	for _, f := range java {
		got, ok := mine.Lookup(f.Key)
		if !slices.Contains(except, f.Key) && (!ok || got != f.Value) {
			t.Errorf("frame %d: %s is %q (%t), Java's is %q", seq, f.Key, got, ok, f.Value)
		}
	}
}

// TestProducerGroup_namespace: a producer group has its namespace on the wire, as Java's has, and nowhere else; the inner group
// of consumers has none.
func TestProducerGroup_namespace(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, broker := one(t)
		ns.serveRoutes(map[string]*wire.TopicRoute{"INST_1%T": routeTo("a")})
		broker.on(wire.ReqSendMessageV2, storesHalf(1))
		c := n.start(t, func(cfg *Config) { cfg.Namespace = "INST_1" })
		seen := make(chan HalfMessage, 1)
		joinProducers(t, c, checks("PG", OutcomeCommit, seen))
		half, err := c.Prepare(t.Context(), "PG", out("x"))
		if err != nil {
			t.Fatal(err)
		}
		h := sent(t, broker, wire.ReqSendMessageV2)[0]
		if props := wire.PropertyMap([]byte(h.Properties.Value)); h.ProducerGroup != "INST_1%PG" || props[wire.PropProducerGroup] != "INST_1%PG" || half.Group != "PG" {
			t.Errorf("prepared as %+v, properties %v, group %s", h, props, half.Group)
		}
		if want := []wire.ProducerData{{GroupName: wire.InnerProducerGroup}, {GroupName: "INST_1%PG"}}; !slices.Equal(heartbeats(t, broker)[0].ProducerDataSet, want) {
			t.Errorf("the heartbeat tells of %v", heartbeats(t, broker)[0].ProducerDataSet)
		}
		broker.push(question(t, "INST_1%PG", 10))
		if asked := <-seen; asked.Group != "PG" {
			t.Errorf("asked as %s", asked.Group)
		}
		wait(time.Second)
		if got := ended(t, broker); len(got) != 1 || got[0].ProducerGroup != "INST_1%PG" {
			t.Errorf("ended as %+v", got)
		}
		if err := c.LeaveProducers(t.Context(), "PG"); err != nil {
			t.Fatal(err)
		}
		if left := broker.requests(wire.ReqUnregisterClient); len(left) != 1 || left[0].Ext.Get("producerGroup") != "INST_1%PG" {
			t.Errorf("unregistered by %v", left)
		}
	})
}
