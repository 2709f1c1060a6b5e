package broker_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// rawClient speaks frames to a broker. It shares nothing with streamd's client but wire.
type rawClient struct {
	t    *testing.T
	nc   net.Conn
	id   string
	mu   sync.Mutex
	next int32
	wait map[int32]chan *wire.Command
	// pushed are the broker's own requests.
	pushed chan *wire.Command
	gone   chan struct{}
	// serve answers the broker's requests; nil = they only go to pushed.
	serve func(*wire.Command) *wire.Command
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func dial(t *testing.T, d dialer, address, id string) *rawClient {
	t.Helper()
	nc, err := d(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	c := &rawClient{
		t: t, nc: nc, id: id, wait: make(map[int32]chan *wire.Command), pushed: make(chan *wire.Command, 1024), gone: make(chan struct{}),
	}
	go c.read()
	t.Cleanup(c.close)
	return c
}

func dialTCP(t *testing.T, b *broker.Broker, id string) *rawClient {
	t.Helper()
	var d net.Dialer
	return dial(t, d.DialContext, b.Address(), id)
}

func (c *rawClient) close() {
	_ = c.nc.Close() // Closing twice is fine here.
	<-c.gone
}

func (c *rawClient) read() {
	defer close(c.gone)
	in := bufio.NewReader(c.nc)
	for {
		frame, err := readFrame(in)
		if err != nil {
			return
		}
		cmd := new(wire.Command)
		if err := cmd.Decode(frame[4:]); err != nil {
			return
		}
		if !cmd.IsResponse() {
			c.push(cmd)
			continue
		}
		c.mu.Lock()
		ch := c.wait[cmd.Opaque]
		delete(c.wait, cmd.Opaque)
		c.mu.Unlock()
		if ch != nil {
			ch <- cmd
		}
	}
}

func (c *rawClient) push(cmd *wire.Command) {
	if c.serve != nil {
		if a := c.serve(cmd); a != nil {
			c.write(a)
		}
	}
	select {
	case c.pushed <- cmd:
	default:
	}
}

func readFrame(in io.Reader) ([]byte, error) {
	var prefix [4]byte
	if _, err := io.ReadFull(in, prefix[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(prefix[:])
	if n > 16<<20 {
		return nil, fmt.Errorf("frame of %d bytes", n)
	}
	frame := make([]byte, 4+n)
	copy(frame, prefix[:])
	_, err := io.ReadFull(in, frame[4:])
	return frame, err
}

func (c *rawClient) write(cmd *wire.Command) {
	frame, err := wire.AppendFrame(nil, cmd)
	if err != nil {
		c.t.Errorf("encoding: %v", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.nc.Write(frame); err != nil {
		c.t.Logf("writing: %v", err)
	}
}

// ext is the fields of a request.
type ext map[string]any

func (e ext) fields() wire.Fields {
	f := wire.Fields{}
	for k, v := range e {
		f = append(f, wire.Field{Key: k, Value: fmt.Sprint(v)})
	}
	return f
}

// start sends a request and returns where its answer will come.
func (c *rawClient) start(code wire.RequestCode, e ext, body []byte) <-chan *wire.Command {
	ch := make(chan *wire.Command, 1)
	c.mu.Lock()
	c.next++
	opaque := c.next
	c.wait[opaque] = ch
	c.mu.Unlock()
	c.write(&wire.Command{
		Code: int32(code), Language: wire.LanguageJava, Version: int32(wire.Version5_3_3), Opaque: opaque, Ext: e.fields(), Body: body,
	})
	return ch
}

func (c *rawClient) oneway(code wire.RequestCode, e ext, body []byte) {
	c.write(&wire.Command{
		Code: int32(code), Version: int32(wire.Version5_3_3), Opaque: -1, Flag: wire.FlagOneway, Ext: e.fields(), Body: body,
	})
}

// call sends a request and waits for its answer.
func (c *rawClient) call(code wire.RequestCode, e ext, body []byte) *wire.Command {
	c.t.Helper()
	return c.await(c.start(code, e, body), 30*time.Second)
}

func (c *rawClient) await(ch <-chan *wire.Command, limit time.Duration) *wire.Command {
	c.t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case a := <-ch:
		return a
	case <-c.gone:
		select {
		case a := <-ch: // It came before the end.
			return a
		default:
			c.t.Fatal("the connection ended instead of an answer")
		}
	case <-timer.C:
		c.t.Fatal("no answer")
	}
	return nil
}

func (c *rawClient) ok(code wire.RequestCode, e ext, body []byte) *wire.Command {
	c.t.Helper()
	a := c.call(code, e, body)
	if a.Code != 0 {
		c.t.Fatalf("%v: code %d %q", code, a.Code, a.Remark)
	}
	return a
}

func (c *rawClient) waitPush(code wire.RequestCode) *wire.Command {
	c.t.Helper()
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	for {
		select {
		case p := <-c.pushed:
			if p.RequestCode() == code {
				return p
			}
		case <-timer.C:
			c.t.Fatalf("no %v came", code)
		}
	}
}

func (c *rawClient) heartbeat(group string, subscriptions map[string]string) *wire.Command {
	c.t.Helper()
	return c.ok(wire.ReqHeartbeat, nil, heartbeatBody(c.t, c.id, group, subscriptions, 1))
}

func heartbeatBody(t *testing.T, id, group string, subscriptions map[string]string, version int64) []byte {
	t.Helper()
	subs := []map[string]any{}
	for topic, expression := range subscriptions {
		subs = append(subs, map[string]any{
			"classFilterMode": false, "codeSet": []int32{}, "expressionType": "TAG", "subString": expression, "subVersion": version,
			"tagsSet": []string{}, "topic": topic,
		})
	}
	body, err := json.Marshal(map[string]any{
		"clientID": id, "heartbeatFingerprint": 0, "withoutSub": false,
		"producerDataSet": []any{map[string]any{"groupName": "CLIENT_INNER_PRODUCER"}},
		"consumerDataSet": []any{map[string]any{
			"consumeFromWhere": "CONSUME_FROM_LAST_OFFSET", "consumeType": "CONSUME_PASSIVELY", "groupName": group,
			"messageModel": "CLUSTERING", "subscriptionDataSet": subs, "unitMode": false,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// send is 310.
func (c *rawClient) send(topic string, queue int, body, properties string, more ext) *wire.Command {
	c.t.Helper()
	e := ext{
		"a": "PG", "b": topic, "c": "TBW102", "d": 4, "e": queue, "f": 0, "g": time.Now().UnixMilli(), "h": 0, "i": properties,
		"j": 0, "k": false, "m": false, "n": "broker-a",
	}
	maps.Copy(e, more)
	return c.call(wire.ReqSendMessageV2, e, []byte(body))
}

func pullFields(group, topic string, queue int, offset int64, hold time.Duration) ext {
	flags := 4
	if hold > 0 {
		flags = 6
	}
	return ext{
		"consumerGroup": group, "topic": topic, "queueId": queue, "queueOffset": offset, "maxMsgNums": 32, "sysFlag": flags,
		"commitOffset": 0, "suspendTimeoutMillis": hold.Milliseconds(), "subscription": "*", "subVersion": 0, "expressionType": "TAG",
	}
}

func (c *rawClient) pull(group, topic string, queue int, offset int64) *wire.Command {
	c.t.Helper()
	return c.call(wire.ReqPullMessage, pullFields(group, topic, queue, offset, 0), nil)
}

func decodeAll(t *testing.T, body []byte) []wire.Message {
	t.Helper()
	var all []wire.Message
	for len(body) > 0 {
		var m wire.Message
		n, err := m.Decode(body)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.CheckCRC(); err != nil {
			t.Fatal(err)
		}
		all, body = append(all, m), body[n:]
	}
	return all
}

func startBroker(t *testing.T, c broker.Config) *broker.Broker {
	t.Helper()
	b := broker.New(c)
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}
