package supervisor_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/streamd/streamd/internal/pluginhost/supervisor"
)

// bench drives a Core in virtual time.
type bench struct {
	core *supervisor.Core
	now  time.Time
	wake time.Time
	gen  uint64
	last []supervisor.Do
}

func newBench(seed uint64, solo bool) *bench {
	b := &bench{now: time.Unix(1000, 0)}
	policy := supervisor.DefaultPolicy()
	policy.Solo = solo
	next := uint64(0)
	b.core = supervisor.New(policy, rand.New(rand.NewPCG(seed, 1)), func() uint64 { next++; return next })
	return b
}

func (b *bench) step(k supervisor.Kind, crash bool) []supervisor.Do {
	actions := b.core.Step(b.now, supervisor.Event{Kind: k, Generation: b.gen, Crash: crash})
	b.last = b.last[:0]
	for _, a := range actions {
		b.last = append(b.last, a.Do)
		switch a.Do {
		case supervisor.Wake:
			b.wake = a.At
		default:
			b.gen = a.Generation
		}
	}
	return b.last
}

// tick moves the clock to the wake-up and delivers it.
func (b *bench) tick() []supervisor.Do {
	b.now = b.wake
	return b.step(supervisor.Tick, false)
}

func (b *bench) toReady(t *testing.T) {
	t.Helper()
	for _, k := range []supervisor.Kind{supervisor.Probed, supervisor.Started, supervisor.Configured} {
		b.step(k, false)
	}
	if s := b.core.Status().State; s != supervisor.Ready {
		t.Fatalf("state %s, want ready", s)
	}
}

func TestCore_life(t *testing.T) {
	t.Parallel()
	const (
		want, unwant = supervisor.Want, supervisor.Unwant
		probed       = supervisor.Probed
		started      = supervisor.Started
		configured   = supervisor.Configured
		failed       = supervisor.StepFailed
		drained      = supervisor.Drained
		exited       = supervisor.Exited
		renew        = supervisor.Renew
		works        = supervisor.Works
	)
	for name, tc := range map[string]struct {
		events []supervisor.Kind
		state  supervisor.State
		last   []supervisor.Do
	}{
		"wanted":                      {[]supervisor.Kind{want}, supervisor.Probing, []supervisor.Do{supervisor.Probe}},
		"wanted twice":                {[]supervisor.Kind{want, want}, supervisor.Probing, nil},
		"probed":                      {[]supervisor.Kind{want, probed}, supervisor.Starting, []supervisor.Do{supervisor.Start}},
		"started":                     {[]supervisor.Kind{want, probed, started}, supervisor.Configuring, []supervisor.Do{supervisor.Configure}},
		"ready":                       {[]supervisor.Kind{want, probed, started, configured}, supervisor.Ready, []supervisor.Do{supervisor.Serve, supervisor.Wake}},
		"missing file":                {[]supervisor.Kind{want, failed}, supervisor.Backoff, []supervisor.Do{supervisor.Wake}},
		"bad config":                  {[]supervisor.Kind{want, probed, started, failed}, supervisor.Backoff, []supervisor.Do{supervisor.Wake}},
		"exit in service":             {[]supervisor.Kind{want, probed, started, configured, exited}, supervisor.Backoff, []supervisor.Do{supervisor.Halt, supervisor.Wake}},
		"drained":                     {[]supervisor.Kind{want, probed, started, configured, unwant, drained}, supervisor.Draining, []supervisor.Do{supervisor.Kill}},
		"stopped":                     {[]supervisor.Kind{want, probed, started, configured, unwant, drained, exited}, supervisor.Stopped, nil},
		"unwanted in the probe":       {[]supervisor.Kind{want, unwant}, supervisor.Stopped, nil},
		"unwanted in the start":       {[]supervisor.Kind{want, probed, unwant}, supervisor.Draining, []supervisor.Do{supervisor.Kill}},
		"start fails while unwanted":  {[]supervisor.Kind{want, probed, unwant, failed}, supervisor.Stopped, nil},
		"unwanted while it waits":     {[]supervisor.Kind{want, failed, unwant}, supervisor.Stopped, nil},
		"wanted again while it ends":  {[]supervisor.Kind{want, probed, started, configured, unwant, drained, want, exited}, supervisor.Probing, []supervisor.Do{supervisor.Probe}},
		"repaired while it waits":     {[]supervisor.Kind{want, failed, renew}, supervisor.Probing, []supervisor.Do{supervisor.Probe}},
		"repaired while it is tried":  {[]supervisor.Kind{want, probed, renew}, supervisor.Starting, nil},
		"renewed in service":          {[]supervisor.Kind{want, probed, started, configured, renew}, supervisor.Ready, nil},
		"renewed and unwanted":        {[]supervisor.Kind{want, failed, unwant, renew}, supervisor.Stopped, nil},
		"another one works":           {[]supervisor.Kind{want, probed, exited, works}, supervisor.Probing, []supervisor.Do{supervisor.Probe}},
		"another one, after a crash":  {[]supervisor.Kind{want, probed, started, configured, exited, works}, supervisor.Backoff, nil},
		"another one, after two ends": {[]supervisor.Kind{want, failed, works, probed, started, configured, exited, works}, supervisor.Backoff, nil},
		"another one, unwanted":       {[]supervisor.Kind{want, failed, unwant, works}, supervisor.Stopped, nil},
		"late start event is nothing": {[]supervisor.Kind{want, probed, started, configured, started}, supervisor.Ready, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(1, false)
			for _, k := range tc.events {
				b.step(k, false)
			}
			if got := b.core.Status().State; got != tc.state {
				t.Errorf("state %s, want %s", got, tc.state)
			}
			if !slices.Equal(b.last, tc.last) {
				t.Errorf("last actions %v, want %v", b.last, tc.last)
			}
		})
	}
}

// A process that ends at start every time is tried about ten times in five minutes, and never given up.
func TestCore_breakerLetsOneThroughAMinute(t *testing.T) {
	t.Parallel()
	b := newBench(7, false)
	b.step(supervisor.Want, false)
	start := b.now
	tries, atFive := 0, 0
	for b.now.Sub(start) < time.Hour {
		b.step(supervisor.Probed, false)
		b.step(supervisor.Exited, true)
		tries++
		if b.now.Sub(start) < 5*time.Minute {
			atFive = tries
		}
		if wait := b.wake.Sub(b.now); wait <= 0 || wait > time.Minute {
			t.Fatalf("try %d: the next one is %s away", tries, wait)
		}
		b.tick()
	}
	if atFive < 8 || atFive > 12 {
		t.Errorf("%d tries in five minutes, want about 10", atFive)
	}
	if !b.core.Status().Open {
		t.Error("the breaker is closed")
	}
	b.toReady(t)
	b.tick()
	if s := b.core.Status(); s.Open || s.Exits != 0 || s.State != supervisor.Ready {
		t.Errorf("after a minute in health: %+v", s)
	}
	b.step(supervisor.Exited, true)
	if wait := b.wake.Sub(b.now); wait > 100*time.Millisecond {
		t.Errorf("the pause did not start over: %s", wait)
	}
}

// trip opens the breaker by crashes in the start.
func (b *bench) trip(t *testing.T) {
	t.Helper()
	for !b.core.Status().Open {
		b.step(supervisor.Probed, false)
		b.step(supervisor.Exited, true)
		if !b.core.Status().Open {
			b.tick()
		}
	}
	if s := b.core.Status(); s.State != supervisor.Failed || s.NextTry.Sub(b.now) < 48*time.Second {
		t.Fatalf("tripped: %+v", s)
	}
}

// A repaired process is a new one: nothing that it failed of before counts. A Renew that comes late is for a wait that is over.
func TestCore_renewForgets(t *testing.T) {
	t.Parallel()
	b := newBench(5, false)
	b.step(supervisor.Want, false)
	b.trip(t)
	waited := b.gen
	b.step(supervisor.Renew, false)
	if s := b.core.Status(); s.State != supervisor.Probing || s.Open || s.Exits != 0 || s.Generation == waited {
		t.Errorf("renewed: %+v", s)
	}
	b.step(supervisor.Probed, false)
	b.step(supervisor.Exited, true)
	if wait := b.wake.Sub(b.now); wait > 100*time.Millisecond || b.core.Status().State != supervisor.Backoff {
		t.Errorf("after the first crash of the repaired one: %s, %+v", wait, b.core.Status())
	}
	b.tick()
	b.trip(t)
	before := b.core.Status()
	if got := b.core.Step(b.now, supervisor.Event{Kind: supervisor.Renew, Generation: waited}); got != nil || b.core.Status() != before {
		t.Errorf("a late one: %v, %+v", got, b.core.Status())
	}
	if got := b.core.Step(b.now, supervisor.Event{Kind: supervisor.Renew}); len(got) != 1 || got[0].Do != supervisor.Probe {
		t.Errorf("one for whichever is there: %v", got)
	}
}

// Another process that works does not close the breaker, and its word is for one try each.
func TestCore_worksForgetsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(5, false)
	b.step(supervisor.Want, false)
	b.trip(t)
	b.step(supervisor.Works, false)
	if s := b.core.Status(); s.State != supervisor.Probing || !s.Open || s.Exits < 5 {
		t.Errorf("another one works: %+v", s)
	}
	b.step(supervisor.Probed, false)
	b.step(supervisor.Exited, true)
	if s := b.core.Status(); s.State != supervisor.Failed || s.NextTry.Sub(b.now) < 48*time.Second {
		t.Errorf("it crashed again: %+v", s)
	}
}

func TestCore_failuresToStartDoNotTrip(t *testing.T) {
	t.Parallel()
	b := newBench(3, false)
	b.step(supervisor.Want, false)
	for range 50 {
		b.step(supervisor.StepFailed, false)
		b.tick()
	}
	if s := b.core.Status(); s.Open || s.StartFailures != 50 || s.Exits != 0 {
		t.Errorf("%+v", s)
	}
}

func TestCore_soloCrashesDoNotTrip(t *testing.T) {
	t.Parallel()
	b := newBench(3, true)
	b.step(supervisor.Want, false)
	for range 50 {
		b.toReady(t)
		b.step(supervisor.Exited, true)
		b.tick()
	}
	if s := b.core.Status(); s.Open || s.Exits != 0 || s.Restarts != 50 {
		t.Errorf("%+v", s)
	}
}

func TestCore_oldGenerationsChangeNothing(t *testing.T) {
	t.Parallel()
	b := newBench(3, false)
	b.step(supervisor.Want, false)
	b.toReady(t)
	before := b.core.Status()
	for k := supervisor.Probed; k <= supervisor.Renew; k++ {
		if k == supervisor.Tick {
			continue
		}
		if got := b.core.Step(b.now, supervisor.Event{Kind: k, Generation: b.gen + 1, Crash: true}); got != nil {
			t.Errorf("kind %d: %v", k, got)
		}
	}
	if after := b.core.Status(); after != before {
		t.Errorf("%+v became %+v", before, after)
	}
}

// Whatever comes in whatever order: a wanted process that is not alive always has a next try at most a minute away; one
// that is not wanted never gets started; Serve and Halt alternate; a generation is never started twice.
func TestCore_properties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newBench(rapid.Uint64().Draw(t, "seed"), rapid.Bool().Draw(t, "solo"))
		serving, started := false, map[uint64]bool{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			b.now = b.now.Add(time.Duration(rapid.IntRange(0, 90_000).Draw(t, "ms")) * time.Millisecond)
			kind := supervisor.Kind(rapid.IntRange(int(supervisor.Want), int(supervisor.Works)).Draw(t, "kind"))
			b.step(kind, rapid.Bool().Draw(t, "crash"))
			s := b.core.Status()
			for _, do := range b.last {
				switch do {
				case supervisor.Serve:
					if serving {
						t.Fatal("served twice")
					}
					serving = true
				case supervisor.Halt:
					if !serving {
						t.Fatal("halted without service")
					}
					serving = false
				case supervisor.Start:
					if started[b.gen] {
						t.Fatalf("generation %d started twice", b.gen)
					}
					started[b.gen] = true
					if !s.Wanted {
						t.Fatal("started unwanted")
					}
				case supervisor.Probe, supervisor.Configure:
					if !s.Wanted {
						t.Fatalf("action %d unwanted", do)
					}
				case supervisor.Drain, supervisor.Kill, supervisor.Wake: // always allowed
				}
			}
			if serving != (s.State == supervisor.Ready) {
				t.Fatalf("serving %t in state %s", serving, s.State)
			}
			waits := s.State == supervisor.Backoff || s.State == supervisor.Failed
			if waits && (s.NextTry.IsZero() || s.NextTry.Sub(s.Since) > 90*time.Second+time.Minute) {
				t.Fatalf("%s without a next try: %+v", s.State, s)
			}
			if s.Wanted && (s.State == supervisor.Absent || s.State == supervisor.Stopped) {
				t.Fatalf("wanted and %s", s.State)
			}
			if !s.Wanted && (s.State == supervisor.Starting || s.State == supervisor.Ready || waits) {
				t.Fatalf("unwanted and %s", s.State)
			}
		}
	})
}
