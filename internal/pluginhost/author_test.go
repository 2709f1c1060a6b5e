package pluginhost_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/pluginhost"
	"github.com/streamd/streamd/sdk"
)

// author is the plugin that uses the SDK.
func author(t *testing.T) pluginhost.PluginSpec {
	t.Helper()
	return pluginhost.PluginSpec{Name: "author", Command: []string{authors.get(t)}}
}

// onEachPath runs a test with lanes over gRPC and with lanes over sockets of their own.
func onEachPath(t *testing.T, test func(t *testing.T, plugin pluginhost.PluginSpec)) {
	t.Helper()
	t.Parallel()
	for name, path := range map[string]pluginhost.Datapath{"grpc": pluginhost.DatapathGRPC, "sockets": pluginhost.DatapathAuto} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plugin := author(t)
			plugin.Datapath = path
			test(t, plugin)
		})
	}
}

// Host and SDK over the real border, with TLS: every verdict, outputs beyond their credit, revoke, crash suspects, config.
func TestSDK_overTheBorder(t *testing.T) { onEachPath(t, overTheBorder) }

func overTheBorder(t *testing.T, plugin pluginhost.PluginSpec) {
	t.Helper()
	b := newBench(t, nil)
	b.apply(plugin)
	got, err := b.host.Configure(within(t, patience), pluginhost.HandlerSpec{
		Name: "wrong", Plugin: "author", Config: []byte(`{"currency":5}`),
	})
	if err != nil || len(got) != 1 || got[0].Pointer != "/currency" || got[0].Warning {
		t.Errorf("diagnostics %+v, %v", got, err)
	}
	s := laneSpec("author")
	s.Concurrency = 8
	l := b.open(s)
	l.until(frame.EventCredit)

	l.send("a", "retry", "reject", "panic")
	verdicts := map[uint32]frame.Verdict{}
	acks := 0
	for len(verdicts) < 3 || acks < 1 {
		if e := l.event(); e.Kind == frame.EventResults {
			for _, v := range e.Results.Verdicts {
				verdicts[v.Index] = v
			}
			for i := 1; i < len(e.Results.AckRuns); i += 2 {
				acks += int(e.Results.AckRuns[i])
			}
		}
	}
	if v := verdicts[1]; v.Kind != frame.VerdictRetry || v.Delay != 3*time.Second {
		t.Errorf("retry: %+v", v)
	}
	if v := verdicts[2]; v.Kind != frame.VerdictReject || v.Class != "bad_order" {
		t.Errorf("reject: %+v", v)
	}
	if v := verdicts[3]; v.Kind != frame.VerdictRetry || v.Class != "panic" || !strings.Contains(v.Text, "author's panic") {
		t.Errorf("panic: %+v", v)
	}

	// 24 MiB of outputs through a window of 8 MiB.
	l.send(strings.Fields(strings.Repeat("emit ", 24))...)
	outputs := 0
	for acks = 0; acks < 24; {
		if e := l.event(); e.Kind == frame.EventResults {
			outputs += e.Results.Outputs.Len()
			for i := 1; i < len(e.Results.AckRuns); i += 2 {
				acks += int(e.Results.AckRuns[i])
			}
		}
	}
	if outputs != 24 {
		t.Errorf("%d outputs", outputs)
	}

	l.send(strings.Repeat("x", 5<<20)) // more than gRPC's default
	l.acked(1)

	l.Revoke([]sdk.Queue{{Topic: "Orders", Broker: "b", ID: 3}})
	eventually(t, "the author hears of it", func() bool { return b.logs.Has("revoked [Orders/b/3]") })

	// The one that ends the process comes when the other two are where they have to be: running, and answered.
	waits := frame.Ref{Seq: l.send("wait", "a")}
	answered, running := 0, false
	for answered < 1 || !running {
		switch e := l.event(); e.Kind {
		case frame.EventResults:
			for i := 1; i < len(e.Results.AckRuns); i += 2 {
				answered += int(e.Results.AckRuns[i])
			}
		case frame.EventStarted:
			running = running || e.Ref == waits
		case frame.EventLost, frame.EventDrained:
			t.Fatalf("the lane ended: %+v", e)
		case frame.EventCredit:
		}
	}
	ends := frame.Ref{Seq: l.send("exit")}
	lost, _ := l.lost()
	if lost.Cause != frame.CauseCrash || len(lost.Suspects) != 2 || !slices.Contains(lost.Suspects, waits) || !slices.Contains(lost.Suspects, ends) {
		t.Errorf("%+v; want %v and %v as suspects", lost, waits, ends)
	}
	contains(t, lost.Text, "exit status 9")
	if !b.logs.Has("a print before the handshake") {
		t.Error("a print before the handshake is not in the log")
	}
}

// A record past its deadline is answered when its handler honors the context. One that does not makes the host replace the
// process, and is the only suspect though others ran beside it.
func TestSDK_deadline(t *testing.T) { onEachPath(t, deadline) }

func deadline(t *testing.T, plugin pluginhost.PluginSpec) {
	t.Helper()
	b := newBench(t, func(c *pluginhost.Config) { c.Timing.Grace = 10 * time.Second }) // for all that happens before the deaf one ends
	b.apply(plugin)
	s := laneSpec("author")
	s.Deadline = 4 * time.Second // by which the last one comes later: the host must look in between
	l := b.open(s)
	l.until(frame.EventCredit)
	batch := l.batch("wait", "deaf")
	batch.Budget = s.Deadline
	if err := l.Send(batch); err != nil {
		t.Fatal(err)
	}
	e, _ := l.until(frame.EventResults)
	if len(e.Results.Verdicts) != 1 || e.Results.Verdicts[0].Index != 0 || e.Results.Verdicts[0].Kind != frame.VerdictRetry {
		t.Errorf("%+v", e.Results)
	}
	withdrawn := l.batch("wait")
	if err := l.Send(withdrawn); err != nil {
		t.Fatal(err)
	}
	l.Cancel(withdrawn.Seq, nil)
	if e, _ := l.until(frame.EventResults); e.Results.Seq != withdrawn.Seq {
		t.Errorf("the withdrawn one: %+v", e.Results)
	}
	l.send("wait")
	lost, _ := l.lost()
	if lost.Cause != frame.CauseHang || len(lost.Suspects) != 1 || lost.Suspects[0] != (frame.Ref{Seq: batch.Seq, Index: 1}) {
		t.Errorf("%+v", lost)
	}
	contains(t, lost.Text, "record 1 of batch 1", "must honor its context", "goroutine")
}

// A drain answers all that was sent; a swap between versions under load repeats nothing.
func TestSDK_swapUnderLoad(t *testing.T) { onEachPath(t, swapUnderLoad) }

func swapUnderLoad(t *testing.T, spec pluginhost.PluginSpec) {
	t.Helper()
	b := newBench(t, nil)
	b.apply(spec)
	sent, acked, untouched, swaps := 0, 0, 0, 0
	pace := time.NewTicker(time.Millisecond) // the new version must get its share of a small machine
	defer pace.Stop()
	for swaps < 5 {
		l := b.open(laneSpec("author"))
		l.until(frame.EventCredit)
		credits := 64
		swapped := make(chan error, 1)
		next := spec
		next.Env = map[string]string{"SWAP": strings.Repeat("x", swaps+1)}
		go func() { swapped <- b.host.Apply(t.Context(), next) }()
		for ended := false; !ended; {
			for credits >= 4 {
				if l.Send(l.batch("a", "b", "c", "d")) != nil {
					break // draining
				}
				credits -= 4
				sent += 4
				<-pace.C
			}
			switch e := l.event(); e.Kind {
			case frame.EventCredit:
				credits += e.Credits
			case frame.EventResults:
				untouched += len(e.Results.Verdicts)
				for i := 1; i < len(e.Results.AckRuns); i += 2 {
					acked += int(e.Results.AckRuns[i])
				}
			case frame.EventDrained:
				ended = true
			case frame.EventLost:
				t.Fatalf("lost: %+v", *e.Lost)
			case frame.EventStarted:
			}
		}
		if err := <-swapped; err != nil {
			t.Fatal(err)
		}
		swaps++
	}
	t.Logf("%d sent, %d acked, %d untouched over %d swaps", sent, acked, untouched, swaps)
	if sent != acked+untouched || acked == 0 {
		t.Errorf("%d sent, %d acked, %d untouched", sent, acked, untouched)
	}
}
