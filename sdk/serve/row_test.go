package serve

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"unsafe"

	"google.golang.org/grpc"

	"github.com/streamd/streamd/internal/border"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// call is a lane's call whose frames go elsewhere.
type call struct {
	grpc.ServerStream
	ctx    context.Context
	opened chan struct{}
}

func (c *call) Context() context.Context { return c.ctx }

func (c *call) SendMsg(any) error {
	close(c.opened)
	return nil
}

// openLane runs a lane of a row, and returns the host's end of its frames, what ends its call, and what tells that it is over.
func openLane(t *testing.T, link *border.Link, in *instance, page *frame.Page, generation uint64) (host *border.Pipe, end func(), over <-chan struct{}) {
	t.Helper()
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	c := &call{ctx: ctx, opened: make(chan struct{})}
	context.AfterFunc(ctx, func() { _ = theirs.Close() })
	l := newLane(c, link.Pipe(theirs), &pluginv1.Open{Generation: generation, Lane: 3, Concurrency: 2, Credits: 8}, in, page, slog.New(slog.DiscardHandler))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = l.run() // ends as the call does, which the test ends
	}()
	<-c.opened
	t.Cleanup(func() {
		cancel()
		_ = ours.Close()
	})
	return link.Pipe(ours), cancel, done
}

// The host takes a row for the next lane as soon as it has left the one before. That one goes on until the author's code lets
// go, and must leave the marks of the other alone: they are all that is known after a crash.
func TestALaneThatWasLeftDoesNotTouchTheNextOnesRow(t *testing.T) {
	link, err := border.NewLink()
	if err != nil {
		t.Fatal(err)
	}
	words := make([]uint64, frame.PageSize(4, 8)/8)
	memory := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)
	if _, err := frame.InitPage(memory, 4, 8); err != nil {
		t.Fatal(err)
	}
	page, err := frame.OpenPage(memory)
	if err != nil {
		t.Fatal(err)
	}
	begun, release := make(chan string, 2), map[string]chan struct{}{"old": make(chan struct{}), "new": make(chan struct{})}
	in := &instance{spec: &sdk.Spec{Mode: sdk.ModeSingle}, handler: sdk.HandlerFunc(func(_ context.Context, m *sdk.Message) error {
		begun <- m.ID()
		<-release[m.ID()]
		return nil
	})}
	send := func(host *border.Pipe, id string) {
		var b frame.Builder
		b.Append(&frame.Record{ID: id})
		e := frame.EncodeBatch(&frame.Batch{Seq: 1, Records: *b.Records()})
		if err := host.SendMsg(&e); err != nil {
			t.Fatal(err)
		}
		if got := <-begun; got != id {
			t.Fatalf("%s began", got)
		}
	}
	host, end, over := openLane(t, link, in, page, 1)
	send(host, "old")
	end()
	host, endNew, overNew := openLane(t, link, in, page, 2)
	send(host, "new")
	close(release["old"])
	<-over
	row, _ := page.Row(3)
	if runs, complete := row.Running(2); len(runs) != 1 || !complete {
		t.Errorf("the page says that %v runs, complete %v; want one record", runs, complete)
	}
	close(release["new"])
	endNew()
	<-overNew
	in.work.Wait()
	if runs, complete := row.Running(2); complete {
		t.Errorf("after the lane's end its row still says %v", runs)
	}
}
