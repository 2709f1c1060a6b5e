package faultproxy_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/broker/damage"
	"github.com/streamd/streamd/internal/broker/faultproxy"
	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// rig is a broker in memory behind a proxy, in virtual time.
type rig struct {
	t      *testing.T
	net    *memnet.Network
	broker *broker.Broker
	proxy  *faultproxy.Proxy
	conn   net.Conn
	opaque int32
}

func run(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	bubbletest.Run(t, func(t *testing.T) {
		r := &rig{t: t, net: &memnet.Network{}}
		r.broker = broker.New(broker.Config{Listen: r.net.Listen, Address: "10.0.0.1:10911"})
		if err := r.broker.Start(); err != nil {
			t.Fatal(err)
		}
		r.proxy = faultproxy.New(faultproxy.Config{
			Target: "10.0.0.1:10911", Address: "10.0.0.2:10911", Listen: r.net.Listen, Dial: r.net.DialContext,
		})
		if err := r.proxy.Start(); err != nil {
			t.Fatal(err)
		}
		if err := r.broker.Put(broker.Message{Topic: "T", Body: []byte("hello")}); err != nil {
			t.Fatal(err)
		}
		r.dial()
		f(t, r)
		if err := errors.Join(r.conn.Close(), r.proxy.Close(), r.broker.Close()); err != nil {
			t.Error(err)
		}
	})
}

func (r *rig) dial() {
	r.t.Helper()
	nc, err := r.net.Dial(r.t.Context(), r.proxy.Address())
	if err != nil {
		r.t.Fatal(err)
	}
	r.conn = nc
}

func (r *rig) send(code wire.RequestCode, fields ...wire.Field) {
	r.t.Helper()
	r.opaque++
	frame, err := wire.AppendFrame(nil, &wire.Command{Code: int32(code), Opaque: r.opaque, Ext: fields})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.conn.Write(frame); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) askMax() {
	r.send(wire.ReqGetMaxOffset, wire.Field{Key: "topic", Value: "T"}, wire.Field{Key: "queueId", Value: "0"})
}

// answer reads the next frame within limit.
func (r *rig) answer(limit time.Duration) (*wire.Command, error) {
	r.t.Helper()
	if err := r.conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		r.t.Fatal(err)
	}
	var prefix [4]byte
	if _, err := io.ReadFull(r.conn, prefix[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(prefix[:])
	if n > 1<<20 {
		return nil, errors.New("absurd length")
	}
	content := make([]byte, n)
	if _, err := io.ReadFull(r.conn, content); err != nil {
		return nil, err
	}
	cmd := new(wire.Command)
	return cmd, cmd.Decode(content)
}

func (r *rig) mustAnswer() *wire.Command {
	r.t.Helper()
	a, err := r.answer(time.Minute)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

var codes = []wire.RequestCode{wire.ReqGetMaxOffset}

func TestProxy_passesFrames(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, r *rig) {
		t.Helper()
		r.askMax()
		if a := r.mustAnswer(); a.Code != 0 || a.Opaque != r.opaque || a.Ext.Get("offset") != "1" {
			t.Errorf("answer %+v", a)
		}
	})
}

func TestProxy_passesWhatIsNotFrames(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		var mem memnet.Network
		target, err := mem.Listen("10.0.0.1:80")
		if err != nil {
			t.Fatal(err)
		}
		p := faultproxy.New(faultproxy.Config{Target: "10.0.0.1:80", Address: "10.0.0.2:80", Listen: mem.Listen, Dial: mem.DialContext})
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"GET / HTTP/1.1\r\n\r\n", "\x00\x00", "\x00\x00\x00\x20half a frame"} {
			client, err := mem.Dial(t.Context(), p.Address())
			if err != nil {
				t.Fatal(err)
			}
			server, err := target.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(client, text); err != nil {
				t.Fatal(err)
			}
			if err := client.(*memnet.Conn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(server)
			if err != nil || string(got) != text {
				t.Errorf("got %q, %v; want %q", got, err, text)
			}
			if err := errors.Join(client.Close(), server.Close()); err != nil {
				t.Error(err)
			}
		}
		if err := errors.Join(p.Close(), target.Close()); err != nil {
			t.Error(err)
		}
	})
}

func TestProxy_rules(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule  faultproxy.Rule
		check func(t *testing.T, r *rig)
	}{
		"refuse": {
			faultproxy.Rule{Codes: codes, Times: 1, Do: faultproxy.Refuse(wire.RespSystemBusy, "busy")},
			func(t *testing.T, r *rig) {
				t.Helper()
				if a := r.mustAnswer(); a.ResponseCode() != wire.RespSystemBusy || a.Remark != "busy" || a.Opaque != r.opaque {
					t.Errorf("answer %+v", a)
				}
			},
		},
		"drop the request": {
			faultproxy.Rule{Codes: codes, Direction: faultproxy.ToBroker, Times: 1, Do: faultproxy.Drop()},
			silent,
		},
		"drop the answer": {
			faultproxy.Rule{Codes: codes, Answers: true, Times: 1, Do: faultproxy.Drop()},
			silent,
		},
		"stall": {
			faultproxy.Rule{Codes: codes, Direction: faultproxy.ToClient, Times: 1, Do: faultproxy.Stall()},
			silent,
		},
		"delay": {
			faultproxy.Rule{Codes: codes, Requests: true, Times: 1, Do: faultproxy.Delay(5 * time.Second)},
			func(t *testing.T, r *rig) {
				t.Helper()
				start := time.Now()
				r.mustAnswer()
				if d := time.Since(start); d != 5*time.Second {
					t.Errorf("took %v", d)
				}
			},
		},
		"cut":           {faultproxy.Rule{Codes: codes, Times: 1, Do: faultproxy.Cut()}, ended},
		"cut mid-frame": {faultproxy.Rule{Codes: codes, Answers: true, Times: 1, Do: faultproxy.CutMidFrame()}, ended},
		"half-close":    {faultproxy.Rule{Codes: codes, Answers: true, Times: 1, Do: faultproxy.HalfClose()}, ended},
		"garble":        {faultproxy.Rule{Codes: codes, Answers: true, Times: 1, Do: faultproxy.Garble(damage.GarbageHeader)}, ended},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(t *testing.T, r *rig) {
				t.Helper()
				i := r.proxy.Inject(c.rule)
				// Another code is not hit.
				r.send(wire.ReqGetMinOffset, wire.Field{Key: "topic", Value: "T"}, wire.Field{Key: "queueId", Value: "0"})
				r.mustAnswer()
				r.askMax()
				c.check(t, r)
				if err := i.Wait(t.Context(), 1); err != nil || i.Hits() != 1 {
					t.Errorf("hits %d, %v", i.Hits(), err)
				}
				// The next connection is not hit: the rule acts once.
				if err := r.conn.Close(); err != nil {
					t.Error(err)
				}
				r.dial()
				r.askMax()
				if a := r.mustAnswer(); a.Code != 0 {
					t.Errorf("after the fault: %+v", a)
				}
			})
		})
	}
}

func silent(t *testing.T, r *rig) {
	t.Helper()
	if a, err := r.answer(time.Minute); err == nil {
		t.Errorf("answer %+v", a)
	} else if ne, ok := errors.AsType[net.Error](err); !ok || !ne.Timeout() {
		t.Errorf("the connection ended: %v", err)
	}
}

func ended(t *testing.T, r *rig) {
	t.Helper()
	a, err := r.answer(time.Minute)
	if err == nil {
		t.Errorf("answer %+v", a)
	} else if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		t.Error("the connection is still open and silent")
	}
}

func TestProxy_stallHoldsAndResumes(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, r *rig) {
		t.Helper()
		resume := r.proxy.Stall()
		r.askMax()
		silent(t, r)
		resume()
		resume() // once counts
		if a := r.mustAnswer(); a.Code != 0 {
			t.Errorf("answer %+v", a)
		}
	})
}

func TestProxy_stopRefusesAndStartServesAgain(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, r *rig) {
		t.Helper()
		address := r.proxy.Address()
		if err := r.proxy.Stop(); err != nil {
			t.Fatal(err)
		}
		ended(t, r)
		if nc, err := r.net.Dial(t.Context(), address); err == nil {
			t.Errorf("connected to %v", nc.RemoteAddr())
		}
		if err := r.proxy.Start(); err != nil {
			t.Fatal(err)
		}
		if r.proxy.Address() != address {
			t.Errorf("address %s, was %s", r.proxy.Address(), address)
		}
		r.dial()
		r.askMax()
		r.mustAnswer()
	})
}

func TestProxy_targetAbsent(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, r *rig) {
		t.Helper()
		if err := errors.Join(r.conn.Close(), r.broker.Stop()); err != nil {
			t.Fatal(err)
		}
		r.dial()
		ended(t, r)
		synctest.Wait()
		if n := r.proxy.Connections(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

func TestProxy_overTCP(t *testing.T) {
	t.Parallel()
	b := broker.New(broker.Config{})
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	p := faultproxy.New(faultproxy.Config{Target: b.Address()})
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	var d net.Dialer
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	nc, err := d.DialContext(ctx, "tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	frame, err := wire.AppendFrame(nil, &wire.Command{Code: int32(wire.ReqGetClusterInfo), Opaque: 7})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Write(frame); err != nil {
		t.Fatal(err)
	}
	prefix := make([]byte, 4)
	if _, err := io.ReadFull(nc, prefix); err != nil {
		t.Fatal(err)
	}
	content := make([]byte, binary.BigEndian.Uint32(prefix))
	if _, err := io.ReadFull(nc, content); err != nil || !bytes.Contains(content, []byte(b.Address())) {
		t.Errorf("answer %q, %v", content, err)
	}
	if err := errors.Join(nc.Close(), p.Close(), b.Close()); err != nil {
		t.Error(err)
	}
}
