package broker_test

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// TestHostileCrowd_leavesOthersUnharmed has all kinds of bad clients at once, and a good one that goes on sending and
// pulling. What the broker takes for them is bounded, and is given back when they are gone.
func TestHostileCrowd_leavesOthersUnharmed(t *testing.T) {
	const (
		clients = 150 // of each kind
		asked   = 40  // pulls of each that reads nothing: 1.5 GiB in all
		limit   = 320 << 20
	)
	b := startBroker(t, patient())
	if err := b.Fill("Big", 1, 64, 60<<10); err != nil {
		t.Fatal(err)
	}
	good := dialTCP(t, b, "good")
	good.send("T", 0, "x", "", nil)
	before := heap()
	var unknown []byte
	for range 100 {
		unknown = appendRequest(t, unknown, &wire.Command{Code: 31_000})
	}
	var pulls []byte
	for range asked {
		pulls = appendRequest(t, pulls, &wire.Command{Code: int32(wire.ReqPullMessage), Ext: pullFields("G", "Big", 0, 0, 0).fields()})
	}
	half := appendRequest(t, nil, &wire.Command{Code: 10, Body: make([]byte, 32<<10)})
	var crowd []net.Conn
	for range clients {
		for _, input := range [][]byte{nil, half[:len(half)-1], unknown, pulls} {
			crowd = append(crowd, sendAndIgnore(t, b.Address(), input))
		}
	}
	var slowest time.Duration
	for i := range 300 {
		start := time.Now()
		if a := good.send("T", 0, "x", "", nil); a.Code != 0 {
			t.Fatalf("send %d: %d %q", i+1, a.Code, a.Remark)
		}
		if a := good.pull("G", "T", 0, int64(i)); a.Code != 0 {
			t.Fatalf("pull %d: %d %q", i+1, a.Code, a.Remark)
		}
		slowest = max(slowest, time.Since(start))
	}
	grown := int64(heap()) - int64(before)
	t.Logf("%d MiB for %d clients, the slowest send and pull of the good one took %v", grown>>20, 4*clients, slowest)
	if grown > limit {
		t.Errorf("the crowd took %d MiB, the limit is %d", grown>>20, limit>>20)
	}
	if slowest > 30*time.Second { // A slow machine has all the others to serve, too.
		t.Errorf("a send and a pull took %v", slowest)
	}
	for _, nc := range crowd {
		_ = nc.Close() // The broker may have cut it.
	}
	if err := b.Await(t.Context(), func(b *broker.Broker) bool { return b.Connections() == 1 }); err != nil {
		t.Fatal(err)
	}
	if kept := int64(heap()) - int64(before); kept > limit/4 {
		t.Errorf("%d MiB are kept when the crowd is gone", kept>>20)
	}
}

func appendRequest(t *testing.T, dst []byte, cmd *wire.Command) []byte {
	t.Helper()
	frame, err := wire.AppendFrame(nil, cmd)
	if err != nil {
		t.Fatal(err)
	}
	return append(dst, frame...)
}

// sendAndIgnore connects, sends and reads nothing.
func sendAndIgnore(t *testing.T, address string, input []byte) net.Conn {
	t.Helper()
	var d net.Dialer
	nc, err := d.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() }) // The broker may have cut it.
	if _, err := bytes.NewReader(input).WriteTo(nc); err != nil {
		t.Logf("writing: %v", err)
	}
	return nc
}
