package e2e_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/broker/damage"
	"github.com/streamd/streamd/internal/porttest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// pair is a stage with a broker that will be disturbed and one that will not, with a stream on each.
func pair(t *testing.T) (s *stage, bad, good *stream) {
	t.Helper()
	s = newStage(t)
	bad = s.witness("bad", s.newBroker(), "")
	good = s.witness("good", s.newBroker(), "")
	return s, bad, good
}

// goesOn proves that a stream works while another one is disturbed.
func (s *stream) goesOn(word string) {
	s.t.Helper()
	bodies := numbered(word, 40)
	s.feed(bodies...)
	s.handles(bodies...)
}

func TestBroker_absentAtStartAndBackLater(t *testing.T) {
	t.Parallel()
	s, bad, good := pair(t)
	bad.feed(numbered("a", 100)...)
	address := bad.broker.Address()
	if err := bad.broker.Stop(); err != nil {
		t.Fatal(err)
	}
	d := s.run(1)
	good.goesOn("during")
	d.holds("bad", address)
	d.says(address, "refused")
	if d.told().Ready {
		t.Error("ready though a stream has not joined")
	}
	if err := bad.broker.Start(); err != nil {
		t.Fatal(err)
	}
	bad.handles(bad.bodies...)
	bad.settles()
	bad.once()
	d.stop()
}

func TestBroker_killedAndRestartedUnderLoad(t *testing.T) {
	t.Parallel()
	s, bad, good := pair(t)
	d := s.run(1)
	stop := bad.load("slow 20")
	for i := range 3 {
		bad.awaitWork(i)
		if err := bad.broker.Stop(); err != nil {
			t.Fatal(err)
		}
		good.goesOn(fmt.Sprint("during ", i))
		if err := bad.broker.Start(); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	bad.handles(bad.bodies...)
	bad.settles()
	bad.unburned()
	good.once()
	d.says("bad", bad.broker.Address())
	d.stop()
}

// awaitWork waits until deliveries have started that have not ended, n times anew.
func (s *stream) awaitWork(n int) {
	s.t.Helper()
	before := len(s.lines())
	s.until(fmt.Sprintf("work in flight, round %d", n), func() (bool, string) {
		lines := s.lines()
		return len(lines) >= before+50 && len(inFlight(lines)) > 0, fmt.Sprintf("%d lines", len(lines))
	})
}

func TestBroker_acceptsButIsSilent(t *testing.T) {
	t.Parallel()
	s, bad, good := pair(t)
	d := s.run(1)
	bad.goesOn("before")
	silence := bad.broker.Silence()
	bad.feed(numbered("during", 200)...)
	if err := silence.Wait(within(t, patience), 5); err != nil {
		t.Fatal(err)
	}
	good.goesOn("during")
	d.says(bad.broker.Address(), "answer")
	silence.Lift()
	bad.handles(bad.bodies...)
	bad.settles()
	bad.unburned()
	d.stop()
}

func TestBroker_halfClosed(t *testing.T) {
	t.Parallel()
	s, bad, good := pair(t)
	d := s.run(1)
	stop := bad.load("slow 5")
	for _, code := range []wire.RequestCode{wire.ReqPullMessage, wire.ReqUpdateConsumerOffset, wire.ReqHeartbeat} {
		fault := bad.broker.Faults().Inject(broker.Fault{Codes: []wire.RequestCode{code}, Times: 2, Do: broker.HalfClose()})
		if code == wire.ReqHeartbeat {
			bad.broker.DropConnections() // a new connection begins with one
		}
		if err := fault.Wait(within(t, patience), 2); err != nil {
			t.Fatalf("request %d was not hit: %v", code, err)
		}
		fault.Lift()
	}
	good.goesOn("during")
	stop()
	bad.handles(bad.bodies...)
	bad.settles()
	bad.unburned()
	d.stop()
}

func TestNameServer_goneWhileRunning(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	names := broker.NewNameServer(broker.NameServerConfig{Address: porttest.Reserve(t)})
	if err := names.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := names.Close(); err != nil {
			t.Error(err)
		}
	}()
	b := s.newBroker(func(c *broker.Config) { c.NameServer = names })
	st := s.witness("orders", b, "")
	s.names = names.Address()
	d := s.run(1)
	st.goesOn("before")
	if err := names.Stop(); err != nil {
		t.Fatal(err)
	}
	st.feed("fail 1 x", "reject y")
	st.goesOn("without")
	d.says("not reachable", names.Address(), "name server")
	st.goesOn("still without")
	if err := names.Start(); err != nil {
		t.Fatal(err)
	}
	st.goesOn("again")
	st.handles("fail 1 x")
	st.settles()
	if dead := b.DeadLetters(st.group()); len(dead) != 1 || string(dead[0].Body) != "reject y" {
		t.Errorf("%d dead letters", len(dead))
	}
	st.once()
	d.stop()
}

// What a broker sends may be broken in any way: it is not believed, it is asked again, and the rest of the process works.
func TestBroker_sendsGarbage(t *testing.T) {
	t.Parallel()
	s, bad, good := pair(t)
	d := s.run(1)
	bad.goesOn("before")
	for _, kind := range damage.Kinds() {
		fault := bad.broker.Faults().Inject(broker.Fault{
			Codes: []wire.RequestCode{wire.ReqPullMessage}, Times: 3, Do: broker.Corrupt(kind),
		})
		bodies := numbered(kind.String(), 40)
		bad.feed(bodies...)
		if err := fault.Wait(within(t, patience), 3); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		fault.Lift()
		bad.handles(bodies...)
	}
	good.goesOn("during")
	bad.settles()
	bad.unburned()
	d.says("stored message does not decode, fetching it again", bad.topic(), "offset")
	d.says(bad.broker.Address(), "broke the protocol", "frame of 2147483651 bytes is too large")
	d.stop()
}

// A refused send-back is tried again, and holds the offset of its message and nothing else.
func TestBroker_refusesSendBacksForAWhile(t *testing.T) {
	t.Parallel()
	s, bad, good := pair(t)
	refusal := bad.broker.Faults().Inject(broker.Fault{
		Codes: sends(), Do: broker.Refuse(wire.RespSystemBusy, "[PCBUSY_CLEAN_QUEUE]broker busy"),
	})
	d := s.run(1)
	bad.feed("fail 1 a", "fail 1 b")
	bad.feed(numbered("ok", 100)...)
	bad.handles(numbered("ok", 100)...)
	if err := refusal.Wait(within(t, patience), 12); err != nil {
		t.Fatal(err)
	}
	good.goesOn("during")
	d.holds("bad", "settle_refused", "broker busy")
	for q := range int32(2) { // the first message of these queues is refused
		if at, _ := bad.broker.Committed(bad.group(), bad.topic(), q); at != 0 {
			t.Errorf("queue %d: committed %d past a message that is not settled", q, at)
		}
	}
	refusal.Lift()
	bad.handles(bad.bodies...)
	bad.settles()
	bad.once()
	d.stop()
}

// sends are the requests that store a message.
func sends() []wire.RequestCode {
	return []wire.RequestCode{wire.ReqSendBack, wire.ReqSendMessage, wire.ReqSendMessageV2, wire.ReqSendBatchMessage}
}

// Settled before durable is refused: with send-backs refused and streamd killed, the stored offset is at most the lowest
// unsettled one, and the next streamd settles what is left.
func TestStreamd_killedBeforeAVerdictIsDurable(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	st := s.witness("orders", s.newBroker(), "")
	refusal := st.broker.Faults().Inject(broker.Fault{Codes: sends(), Do: broker.Refuse(wire.RespSystemError, "disk full")})
	d := s.run(1)
	var bodies []string
	for i := range 400 {
		word := "ok"
		if i%100 >= 20 && i%100 < 24 { // one in each queue, the sixth
			word = "fail 1"
		} else if i%100 >= 40 && i%100 < 44 {
			word = "reject"
		}
		bodies = append(bodies, fmt.Sprintf("%s %d", word, i))
	}
	st.feed(bodies...)
	ok := slices.DeleteFunc(slices.Clone(bodies), func(b string) bool { return b[0] != 'o' })
	st.handles(ok...)
	if err := refusal.Wait(within(t, patience), 8); err != nil {
		t.Fatal(err)
	}
	// The rest is settled and committed up to the first that is not.
	s.until("what is settled is committed", func() (bool, string) {
		return st.committed() == 4*5, fmt.Sprint("committed ", st.committed())
	})
	d.kill()
	for q := range int32(queues) {
		if at, _ := st.broker.Committed(st.group(), st.topic(), q); at > 5 {
			t.Errorf("queue %d: committed %d, the lowest unsettled message is 5", q, at)
		}
	}
	// What was sent before the end is still read, and is to be refused as well.
	if err := st.broker.Await(within(t, patience), func(b *broker.Broker) bool { return b.Connections() == 0 }); err != nil {
		t.Fatalf("%d connections of a process that is gone: %v", st.broker.Connections(), err)
	}
	refusal.Lift()
	d = s.run(1)
	st.handles(slices.DeleteFunc(slices.Clone(bodies), func(b string) bool { return b[0] == 'r' })...)
	st.settles()
	if dead := st.broker.DeadLetters(st.group()); len(dead) != 16 {
		t.Errorf("%d dead letters, want the 16 that were rejected", len(dead))
	}
	d.stop()
}
