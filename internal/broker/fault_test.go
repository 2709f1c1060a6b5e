package broker_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/broker/damage"
	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

var maxOffset = []wire.RequestCode{wire.ReqGetMaxOffset}

func askMax(c *rawClient) <-chan *wire.Command {
	return c.start(wire.ReqGetMaxOffset, ext{"topic": "T", "queueId": 0}, nil)
}

func TestFault_refuseByCodeAndCount(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	c := dialTCP(t, b, "c1")
	i := b.Faults().Inject(broker.Fault{
		Codes: maxOffset, Skip: 1, Times: 2, Do: broker.Refuse(wire.RespSystemBusy, "[TIMEOUT_CLEAN_QUEUE]"),
		Match: func(r broker.Request) bool { return r.Fields.Get("topic") == "T" },
	})
	var codes []int32
	for range 5 {
		codes = append(codes, c.await(askMax(c), time.Minute).Code)
		c.ok(wire.ReqGetMinOffset, ext{"topic": "T", "queueId": 0}, nil)
		c.ok(wire.ReqGetMaxOffset, ext{"topic": "other", "queueId": 0}, nil)
	}
	want := []int32{0, 2, 2, 0, 0}
	for n := range want {
		if codes[n] != want[n] {
			t.Fatalf("codes %v, want %v", codes, want)
		}
	}
	if i.Hits() != 2 {
		t.Errorf("hits %d", i.Hits())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := i.Wait(ctx, 2); err != nil {
		t.Error(err)
	}
}

func TestFault_delayAndDrop(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		c := dial(t, net.DialContext, b.Address(), "c1")
		b.Faults().Inject(broker.Fault{Codes: maxOffset, Times: 1, Do: broker.Delay(7 * time.Second)})
		start := time.Now()
		slow, fast := askMax(c), askMax(c)
		c.await(fast, time.Minute)
		if d := time.Since(start); d != 0 {
			t.Errorf("the request behind the delayed one took %v", d)
		}
		c.await(slow, time.Minute)
		if d := time.Since(start); d != 7*time.Second {
			t.Errorf("the delayed request took %v", d)
		}
		b.Faults().Inject(broker.Fault{Codes: []wire.RequestCode{wire.ReqSendMessageV2}, Times: 1, Do: broker.DropAnswer()})
		lost := c.start(wire.ReqSendMessageV2, ext{"b": "T", "c": "TBW102", "e": 0, "d": 4, "i": ""}, []byte("x"))
		silence := b.Silence()
		unheard := askMax(c)
		pause(t, time.Hour/60)
		silence.Lift()
		select {
		case a := <-lost:
			t.Errorf("the dropped answer came: %+v", a)
		case a := <-unheard:
			t.Errorf("an answer out of the silence: %+v", a)
		default:
		}
		if n := len(b.Messages("T")); n != 1 {
			t.Errorf("%d messages stored; a dropped answer's request is carried out", n)
		}
	})
}

func TestFault_reorder(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	c := dialTCP(t, b, "c1")
	i := b.Faults().Inject(broker.Fault{Codes: maxOffset, Do: broker.Reorder(3)})
	first := askMax(c)
	second := askMax(c)
	c.ok(wire.ReqGetMinOffset, ext{"topic": "T", "queueId": 0}, nil)
	select {
	case <-first:
		t.Fatal("an answer came before three were there")
	default:
	}
	third := askMax(c)
	c.await(first, time.Minute) // The last of the three to be sent.
	for n, ch := range []<-chan *wire.Command{second, third} {
		select {
		case <-ch:
		default:
			t.Errorf("answer %d is behind the first", n+2)
		}
	}
	held := askMax(c)
	if err := i.Wait(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	i.Lift()
	c.await(held, time.Minute)
}

func TestFault_cutAndHalfClose(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]broker.Action{"cut": broker.Cut(), "half-close": broker.HalfClose()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := startBroker(t, broker.Config{})
			victim, other := dialTCP(t, b, "c1"), dialTCP(t, b, "c2")
			b.Faults().Inject(broker.Fault{Codes: maxOffset, Times: 1, Do: do})
			answer := askMax(victim)
			<-victim.gone
			select {
			case a := <-answer:
				t.Errorf("answered: %+v", a)
			default:
			}
			other.await(askMax(other), time.Minute)
		})
	}
}

func TestFault_corrupt(t *testing.T) {
	t.Parallel()
	for _, kind := range damage.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			b := startBroker(t, broker.Config{})
			if err := b.Put(broker.Message{Topic: "T", Body: []byte("one")}, broker.Message{Topic: "T", Body: []byte("two")}); err != nil {
				t.Fatal(err)
			}
			b.Faults().Inject(broker.Fault{Codes: []wire.RequestCode{wire.ReqPullMessage}, Times: 1, Do: broker.Corrupt(kind)})
			var d net.Dialer
			nc, err := d.DialContext(t.Context(), "tcp", b.Address())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = nc.Close() }()
			frame, err := wire.AppendFrame(nil, &wire.Command{
				Code: int32(wire.ReqPullMessage), Ext: pullFields("G", "T", 0, 0, 0).fields(), Opaque: 1,
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := nc.Write(frame); err != nil {
				t.Fatal(err)
			}
			if err := readPull(nc); err == nil {
				t.Error("the answer is whole")
			}
			if _, err := nc.Write(frame); err != nil {
				t.Fatal(err)
			}
			if kind == damage.AbsurdFrameLength {
				return // The stream is out of step, as it should be.
			}
			if err := readPull(nc); err != nil {
				t.Errorf("the next answer: %v", err)
			}
		})
	}
}

// readPull reads an answer to a pull and checks everything in it.
func readPull(nc net.Conn) error {
	frame, err := readFrame(nc)
	if err != nil {
		return err
	}
	var cmd wire.Command
	if err := cmd.Decode(frame[4:]); err != nil {
		return err
	}
	for body := cmd.Body; len(body) > 0; {
		var m wire.Message
		n, err := m.Decode(body)
		if err != nil {
			return err
		}
		if err := m.CheckCRC(); err != nil {
			return err
		}
		body = body[n:]
	}
	return nil
}
