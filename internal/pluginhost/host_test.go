package pluginhost_test

import (
	"errors"
	"strconv"
	"testing"

	"github.com/streamd/streamd/internal/frame"
)

func TestLane_answersAndDrains(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.apply(spec(t, "acme", "ok"))
	l := b.open(laneSpec("acme"))
	if e, _ := l.until(frame.EventCredit); e.Credits != 64 {
		t.Fatalf("%d credits, want 64", e.Credits)
	}
	l.send("a", "b", "retry")
	acks, retry := 0, frame.Verdict{}
	for acks < 2 || retry.Kind == 0 {
		e := l.event()
		if e.Kind != frame.EventResults {
			continue
		}
		if len(e.Results.Verdicts) > 0 {
			retry = e.Results.Verdicts[0]
		}
		acks += len(e.Results.AckRuns) / 2
	}
	if retry.Kind != frame.VerdictRetry || retry.Class != "busy" || retry.Index != 2 || retry.Delay.Milliseconds() != 1500 {
		t.Errorf("verdict %+v", retry)
	}
	info := l.Info()
	if info.Plugin != "acme" || info.Version != "0.1.0" || len(info.Checksum) != 71 || info.Generation == 0 || info.PID == 0 || info.MaxBytes != 32<<20 || info.ConfigHash == "" {
		t.Errorf("info %+v", info)
	}
	done := make(chan error, 1)
	go func() { done <- l.Drain(t.Context()) }()
	l.until(frame.EventDrained)
	if err := <-done; err != nil {
		t.Errorf("draining: %v", err)
	}
	if err := l.Send(l.batch("late")); !errors.Is(err, frame.ErrLaneDone) {
		t.Errorf("sending after the drain: %v", err)
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
