package broker

import (
	"bufio"
	"io"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker/faultfs"
	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// breakable is a broker in a bubble whose disk fails on demand.
type breakable struct {
	*Broker
	t   *testing.T
	net memnet.Network
	fs  *faultfs.FS
}

func startBreakable(t *testing.T) *breakable {
	t.Helper()
	b := &breakable{t: t, fs: faultfs.New(vfs.NewMem())}
	b.Broker = New(Config{Listen: b.net.Listen, Address: "10.0.0.1:10911", DataDir: "data", Files: b.fs})
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *breakable) start() {
	b.t.Helper()
	if err := b.Start(); err != nil {
		b.t.Fatal(err)
	}
}

// fail makes the store fail, and the disk a good one again.
func (b *breakable) fail() {
	b.t.Helper()
	hit, lift := b.fs.Inject(faultfs.Fault{Op: faultfs.Sync, Suffix: ".log", Err: syscall.EIO})
	if err := b.Put(Message{Topic: "T", Body: []byte("unknown")}); err == nil {
		b.t.Error("a message was stored on a disk that fails")
	}
	<-hit
	lift()
}

// call sends one request and returns its answer.
func (b *breakable) call(code wire.RequestCode, f wire.Fields) *wire.Command {
	b.t.Helper()
	nc, err := b.net.DialContext(b.t.Context(), "tcp", b.Address())
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() {
		if err := nc.Close(); err != nil {
			b.t.Error(err)
		}
	}()
	frame, err := wire.AppendFrame(nil, &wire.Command{Code: int32(code), Opaque: 1, Ext: f})
	if err == nil {
		_, err = nc.Write(frame)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	in, prefix := bufio.NewReader(nc), make([]byte, wire.PrefixSize)
	if _, err := io.ReadFull(in, prefix); err != nil {
		b.t.Fatal(err)
	}
	n, err := wire.FrameLength(prefix)
	if err != nil {
		b.t.Fatal(err)
	}
	content := make([]byte, n)
	if _, err := io.ReadFull(in, content); err != nil {
		b.t.Fatal(err)
	}
	answer := new(wire.Command)
	if err := answer.Decode(content); err != nil {
		b.t.Fatal(err)
	}
	return answer
}

func kvOf(value string) wire.Fields {
	f := wire.Fields{{Key: "namespace", Value: "N"}, {Key: "key", Value: "K"}}
	if value != "" {
		f = append(f, wire.Field{Key: "value", Value: value})
	}
	return f
}

// TestReply_ofAHandlerThatStalls while the store fails and opens itself again: what the handler set may be gone, and its client
// must not hear of success.
func TestReply_ofAHandlerThatStalls(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"sets before the failure": true, "sets after the failure": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubbletest.Run(t, func(t *testing.T) {
				b := startBreakable(t)
				const stalls = wire.ReqGroupForbidden
				b.handle[stalls] = func(broker *Broker, _ *remote.Request) *remote.Answer {
					set := func() { broker.saver(tableKV)(joinKey("N", "K"), []byte("v")) }
					if before {
						set()
					}
					b.fail()
					if !before {
						set()
					}
					<-time.After(time.Minute)
					return plain(wire.RespSuccess, "")
				}
				b.start()
				if a := b.call(stalls, nil); a.ResponseCode() != wire.RespServiceNotAvailable {
					t.Errorf("answered %d %q", a.Code, a.Remark)
				}
				if a := b.call(wire.ReqGetKVConfig, kvOf("")); !before && a.ResponseCode() != wire.RespQueryNotFound {
					t.Errorf("what was set while the store had failed is there: %d %q %v", a.Code, a.Remark, a.Ext)
				}
				if a := b.call(wire.ReqPutKVConfig, kvOf("w")); a.Code != 0 {
					t.Errorf("later: %d %q", a.Code, a.Remark)
				}
			})
		})
	}
}

// TestFailedStore_isNotServedWithOldTables: the store is open again and a table cannot be read.
func TestFailedStore_isNotServedWithOldTables(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		b := startBreakable(t)
		b.start()
		if a := b.call(wire.ReqPutKVConfig, kvOf("v")); a.Code != 0 {
			t.Fatalf("%d %q", a.Code, a.Remark)
		}
		began := b.storage.mark()
		b.storage.set(tableTopics, "Broken", []byte("{"))
		if err := b.storage.settle(began); err != nil {
			t.Fatal(err)
		}
		b.fail()
		for range 3 {
			<-time.After(time.Minute)
			synctest.Wait()
			if a := b.call(wire.ReqGetKVConfig, kvOf("")); a.ResponseCode() != wire.RespServiceNotAvailable {
				t.Errorf("a broker that cannot read its topics answers %d %q", a.Code, a.Remark)
			}
		}
	})
}

// TestDelayed_whileTheMachineSleeps: timers stand still, and a message whose time came meanwhile is delivered soon after.
func TestDelayed_whileTheMachineSleeps(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		b := startBreakable(t)
		slept := make(chan time.Duration, 1)
		slept <- 0
		b.storage.options.Suspended = func() time.Duration {
			d := <-slept
			slept <- d
			return d
		}
		b.start()
		if err := b.Put(Message{Topic: "T", Body: []byte("x"), Properties: map[string]string{wire.PropDelayLevel: "18"}}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if n := len(b.Messages("T")); n != 0 || b.Delayed() != 1 {
			t.Fatalf("after a minute of two hours %d are delivered", n)
		}
		<-slept
		slept <- 3 * time.Hour
		<-time.After(longestLook + 100*time.Millisecond)
		synctest.Wait()
		if n := len(b.Messages("T")); n != 1 {
			t.Errorf("%d are delivered after the machine slept for three hours", n)
		}
		if n := len(b.Messages(wire.ScheduleTopic)); n != 0 {
			t.Errorf("%d are kept where they waited", n)
		}
	})
}

// TestRecall_ofWhatIsDueBeforeTheDiskHasIt: a recall that came in time wins, however long the disk takes for it.
func TestRecall_ofWhatIsDueBeforeTheDiskHasIt(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		b := startBreakable(t)
		b.start()
		due := time.Now().Add(10*time.Second).Truncate(time.Second).UnixMilli() + 1
		for id, at := range map[string]int64{"A": due, "B": due + 1} {
			p := map[string]string{wire.PropUniqueKey: id, wire.PropTimerDeliver: strconv.FormatInt(at, 10)}
			if err := b.Put(Message{Topic: "T", Body: []byte(id), Properties: p}); err != nil {
				t.Fatal(err)
			}
		}
		// Nothing more is stored while the first of these is told.
		gate := make(chan struct{})
		for range 5 {
			if err := b.storage.submit(&store.Change{}, func(error) { <-gate }); err != nil {
				t.Fatal(err)
			}
			b.saver(tableKV)("N\x00K", []byte("v"))
			synctest.Wait()
		}
		h := recallHandle{topic: "T", broker: b.Name(), due: due, id: "A"}
		if err := b.recall(h); err != nil {
			t.Fatal(err)
		}
		if err := b.recall(h); err != nil { // Once more, by a client that did not wait.
			t.Fatal(err)
		}
		<-time.After(15 * time.Second)
		synctest.Wait()
		if n := b.Delayed(); n != 2 {
			t.Fatalf("%d wait: the disk is not held", n)
		}
		close(gate)
		<-time.After(time.Minute)
		synctest.Wait()
		m := b.Messages("T")
		if len(m) != 1 || string(m[0].Body) != "B" || b.Delayed() != 0 {
			t.Errorf("delivered %d, %d wait", len(m), b.Delayed())
		}
	})
}
