package border

import (
	"bytes"
	"errors"
	"io"
	"net"
	goruntime "runtime"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/sdk/pluginv1"
)

func pipes(t *testing.T) (host, plugin *Pipe, hostEnd net.Conn) {
	t.Helper()
	a, b := net.Pipe()
	t.Cleanup(func() { _ = errors.Join(a.Close(), b.Close()) })
	return link(t).Pipe(a), link(t).Pipe(b), a
}

// Frames of every kind and size cross, one after the other, and what was received stays valid.
func TestPipeCarriesFrames(t *testing.T) {
	host, plugin, end := pipes(t)
	sizes := []int{0, 1, 100, pipeBuffer - 5, pipeBuffer, 3*pipeBuffer + 7, 300 << 10, pipeStep, 5*pipeStep + 3}
	sent := make(chan error, 1)
	go func() {
		codec := link(t).Codec
		err := host.SendMsg(&pluginv1.HostFrame{F: &pluginv1.HostFrame_Open{Open: &pluginv1.Open{Stream: "orders", Socket: true}}})
		for i, n := range sizes {
			var b frame.Builder
			b.Append(&frame.Record{Topic: "T", ID: "id", Body: bytes.Repeat([]byte{byte(i)}, n)})
			e := frame.EncodeBatch(&frame.Batch{Seq: uint64(i + 1), Records: *b.Records()})
			err = errors.Join(err, host.SendMsg(codec.Encode(&e)), host.SendMsg(Raw(frame.AppendHostCredit(nil, uint64(n)))))
		}
		sent <- errors.Join(err, end.Close())
	}()
	in := HostFrames()
	if err := plugin.RecvMsg(in); err != nil {
		t.Fatal(err)
	}
	if open, ok := in.Cold.(*pluginv1.Open); !ok || !open.GetSocket() {
		t.Errorf("came as %v", in.Cold)
	}
	got := make([]frame.Batch, len(sizes))
	for i, n := range sizes {
		if err := plugin.RecvMsg(in); err != nil || in.Number != frame.HostBatch {
			t.Fatalf("batch %d: field %d, %v", i, in.Number, err)
		}
		if err := frame.DecodeBatch(in.Message, &got[i]); err != nil {
			t.Fatal(err)
		}
		if err := plugin.RecvMsg(in); err != nil || in.Number != frame.HostCredit {
			t.Fatalf("credit %d: field %d, %v", i, in.Number, err)
		}
		if credit, err := frame.DecodeNumber(in.Message); err != nil || credit != uint64(n) {
			t.Errorf("credit %d, %v", credit, err)
		}
	}
	for i, n := range sizes { // after all came: none lies over another
		if got[i].Seq != uint64(i+1) || !bytes.Equal(got[i].Records.Body(0), bytes.Repeat([]byte{byte(i)}, n)) {
			t.Errorf("batch %d came otherwise", i)
		}
	}
	if err := plugin.RecvMsg(in); !errors.Is(err, io.EOF) {
		t.Errorf("after the close: %v", err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// What is no frame is told as gRPC tells it; what is cut off is no clean end.
func TestPipeTellsWhatIsNoFrame(t *testing.T) {
	for name, bytes := range map[string][]byte{
		"empty": {0, 0, 0, 0}, "absurd": {0xff, 0xff, 0xff, 0xff}, "garbage": {0, 0, 0, 1, 0xff},
	} {
		if err := receiveBytes(t, bytes); status.Code(err) != codes.Internal {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, bytes := range map[string][]byte{"half a length": {0, 0}, "a length": {0, 0, 0, 9}, "half a frame": {0, 0, 0, 9, 1, 2}} {
		if err := receiveBytes(t, bytes); errors.Is(err, io.EOF) || status.Code(err) == codes.Internal || !strings.Contains(err.Error(), "lane's socket") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func receiveBytes(t *testing.T, b []byte) error {
	t.Helper()
	_, plugin, end := pipes(t)
	written := make(chan error, 1)
	go func() {
		_, err := end.Write(b)
		written <- errors.Join(err, end.Close())
	}()
	err := plugin.RecvMsg(HostFrames())
	if err == nil {
		t.Fatal("it was received")
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	return err
}

// A length alone takes no memory for what does not come.
func TestPipeBelievesNoLength(t *testing.T) {
	claim := []byte{3, 0, 0, 0, 1} // 48 MiB
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	if err := receiveBytes(t, claim); errors.Is(err, io.EOF) {
		t.Errorf("cut off: %v", err)
	}
	goruntime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 2*pipeStep {
		t.Errorf("%d bytes were taken for one that came", got)
	}
}

func TestPipeRefusesWhatItDoesNotCarry(t *testing.T) {
	host, plugin, _ := pipes(t)
	if err := plugin.RecvMsg(&pluginv1.HostFrame{}); err == nil {
		t.Error("it reads anything")
	}
	if err := host.SendMsg(Raw(make([]byte, MaxMessage+1))); err == nil || !strings.Contains(err.Error(), "more than a lane takes") {
		t.Errorf("a frame that is too large: %v", err)
	}
}
