package serve

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/border"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/sdk"
)

// A statement that fails is in the text of each message's error: those of a large batch together may be more than a frame
// takes, and one that has more ends the lane. They come in several.
func TestFailuresOfALargeBatchComeInSeveralFrames(t *testing.T) {
	const n = 300
	link, err := border.NewLink()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 32<<10)
	in := &instance{spec: &sdk.Spec{Mode: sdk.ModeBatch}, batchHandler: sdk.BatchHandlerFunc(func(context.Context, *sdk.Batch) error { return errors.New(text) })}
	host, end, over := openLane(t, link, in, nil, 1)
	var b frame.Builder
	for range n {
		b.Append(&frame.Record{ID: "m"})
	}
	e := frame.EncodeBatch(&frame.Batch{Seq: 1, Records: *b.Records()})
	if err := host.SendMsg(&e); err != nil {
		t.Fatal(err)
	}
	frames := 0
	for answered := 0; answered < n; {
		f := border.PluginFrames()
		if err := host.RecvMsg(f); err != nil {
			t.Fatal(err)
		}
		if f.Number != frame.PluginResults {
			continue
		}
		var r frame.Results
		if err := frame.DecodeResults(f.Message, &r, n); err != nil {
			t.Fatal(err)
		}
		if len(f.Message) > frameFull {
			t.Errorf("a frame of %d bytes", len(f.Message))
		}
		answered += len(r.Verdicts)
		frames++
	}
	if frames < 2 {
		t.Errorf("%d frames", frames)
	}
	end()
	<-over
	in.work.Wait()
}
