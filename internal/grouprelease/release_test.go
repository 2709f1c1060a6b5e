package grouprelease

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/groupview"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/sdk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a cluster whose queues hold 100..200, and whose owner takes an offset a while after it was stored.
type fake struct {
	at        int64 // what OffsetAt answers
	resets    map[sdk.Queue]bool
	refused   map[sdk.Queue]error
	committed int64                          // what the owner says it stored itself
	held      map[sdk.Queue]runtime.HoldKind // the owner's view
	takes     map[sdk.Queue]time.Duration    // after the offset was stored; none = never
	leaves    bool                           // instead of taking it the owner gives the queue away
	silent    error

	stored map[sdk.Queue]int64
	since  map[sdk.Queue]time.Time
}

var (
	errGone   = errors.New("it is gone")
	errSilent = errors.New("it says nothing")
)

func (f *fake) MinOffset(context.Context, sdk.Queue) (int64, error)           { return 100, nil }
func (f *fake) MaxOffset(context.Context, sdk.Queue) (int64, error)           { return 200, nil }
func (f *fake) OffsetAt(context.Context, sdk.Queue, time.Time) (int64, error) { return f.at, nil }

func (f *fake) Commit(_ context.Context, group string, q sdk.Queue, offset int64) (bool, error) {
	if group != "billing" || f.resets[q] || f.refused[q] != nil {
		return f.resets[q], f.refused[q]
	}
	if f.stored == nil {
		f.stored, f.since = map[sdk.Queue]int64{}, map[sdk.Queue]time.Time{}
	}
	f.stored[q], f.since[q] = offset, time.Now()
	return false, nil
}

func (f *fake) PeerInfo(_ context.Context, group, id string) (*wire.ConsumerRunningInfo, error) {
	if f.silent != nil || group != "billing" || id != "one" {
		return nil, errors.Join(f.silent, errors.New("asked "+group+" "+id))
	}
	p := runtime.PeerInfo{Queues: map[string]runtime.PeerQueue{}}
	for q, kind := range f.held {
		pq := runtime.PeerQueue{State: "owned", Committed: f.committed, Hold: &runtime.Hold{Kind: kind}}
		if after, takes := f.takes[q]; takes && !f.since[q].IsZero() && time.Since(f.since[q]) > after {
			if f.leaves {
				continue
			}
			pq.Hold = nil
		}
		p.Queues[q.String()] = pq
	}
	text, err := json.Marshal(p)
	return &wire.ConsumerRunningInfo{Properties: map[string]string{runtime.PeerInfoProperty: string(text)}}, err
}

func orders(id int32) sdk.Queue { return sdk.Queue{Topic: "Orders", Broker: "broker-a", ID: id} }

func lost(ids ...int32) (held []Held) {
	for _, id := range ids {
		held = append(held, Held{orders(id), "one", string(runtime.HoldOffsetsLost)})
	}
	return held
}

func TestParsePlace(t *testing.T) {
	if p, err := ParsePlace("broker-a/12"); err != nil || p != (Place{"broker-a", 12}) {
		t.Errorf("%v %v", p, err)
	}
	for _, s := range []string{"", "broker-a", "broker-a/", "/1", "broker-a/-1", "broker-a/x", "Orders/broker-a/1", "b/9999999999"} {
		if _, err := ParsePlace(s); err == nil || !strings.Contains(err.Error(), "BROKER/ID") {
			t.Errorf("ParsePlace(%q) = %v", s, err)
		}
	}
}

func TestParsePosition(t *testing.T) {
	for s, want := range map[string]Position{
		"min": {}, "max": {kind: atMax}, "0": {kind: atOffset}, "9223372036854775807": {kind: atOffset, offset: 1<<63 - 1},
	} {
		if got, ok := ParsePosition(s); !ok || got != want {
			t.Errorf("ParsePosition(%q) = %+v %t", s, got, ok)
		}
	}
	for _, s := range []string{"", "-1", "+1", "9223372036854775808", "2h", "MIN", "2026-11-30T08:00:00Z"} {
		if got, ok := ParsePosition(s); ok {
			t.Errorf("ParsePosition(%q) = %+v", s, got)
		}
	}
}

func TestChoose(t *testing.T) {
	g := &groupview.Group{Group: "billing", Queues: []groupview.Queue{
		{Topic: "Orders", Broker: "broker-a", ID: 0, Owners: []string{"one"}, State: groupview.StateActive},
		{Topic: "Orders", Broker: "broker-a", ID: 1, Owners: []string{"one"}, State: groupview.StateHeld, Hold: "offsets_lost"},
		{Topic: "Orders", Broker: "broker-a", ID: 2, Owners: []string{"two"}, State: groupview.StateHeld, Hold: "offset_out_of_range"},
		{Topic: "Orders", Broker: "broker-a", ID: 3, Owners: []string{"two"}, State: groupview.StateHeld, Hold: "plugin_down", Why: "acme is down"},
		{Topic: "Refunds", Broker: "broker-a", ID: 0, State: groupview.StateUnowned, Why: "nobody"},
		{Topic: "Bills", Broker: "broker-a", ID: 2, Owners: []string{"one"}, State: groupview.StateHeld, Hold: "offsets_lost"},
	}}
	at := func(ids ...int32) (places []Place) {
		for _, id := range ids {
			places = append(places, Place{"broker-a", id})
		}
		return places
	}
	for name, c := range map[string]struct {
		topic  string
		places []Place
		want   string // the queues with their owners
		err    string
	}{
		"all":             {"", nil, "Orders/broker-a/1 one, Orders/broker-a/2 two, Bills/broker-a/2 one", ""},
		"topic":           {"Orders", nil, "Orders/broker-a/1 one, Orders/broker-a/2 two", ""},
		"queue":           {"", at(1), "Orders/broker-a/1 one", ""},
		"twice":           {"", at(1, 1), "Orders/broker-a/1 one", ""},
		"queue of topic":  {"Bills", at(2), "Bills/broker-a/2 one", ""},
		"in two topics":   {"", at(2), "", "Orders and Bills: name one with --topic"},
		"active":          {"", at(1, 0), "", "Orders/broker-a/0 is not held for want of a position: it is active"},
		"other hold":      {"", at(3), "", "it is held for plugin_down (acme is down)"},
		"no queue":        {"", at(9), "", "group billing has no queue broker-a/9"},
		"no topic":        {"Nothing", nil, "", "group billing has no topic Nothing"},
		"topic not held":  {"Refunds", nil, "", "no queue of topic Refunds is held for want of a position: 1 unowned"},
		"queue elsewhere": {"Refunds", at(1), "", "group billing has no queue broker-a/1"},
	} {
		held, err := Choose(g, c.topic, c.places)
		var got []string
		for _, h := range held {
			got = append(got, h.Queue.String()+" "+h.Owner)
		}
		if strings.Join(got, ", ") != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	g.Queues = g.Queues[:1]
	if held, err := Choose(g, "", nil); len(held) != 0 || err != nil || Unseen(g, "", held) != nil {
		t.Errorf("nothing held: %v %v %v", held, err, Unseen(g, "", held))
	}
	g.Model = "BROADCASTING"
	if _, err := Choose(g, "", nil); err == nil || !strings.Contains(err.Error(), "docs/broadcasting.md") {
		t.Errorf("broadcasting: %v", err)
	}
}

// What could not be seen is not taken for not held: it is said, with what it is and why.
func TestChoose_unseen(t *testing.T) {
	g := &groupview.Group{
		Group: "billing",
		Queues: []groupview.Queue{
			{Topic: "Orders", Broker: "broker-a", ID: 0, Owners: []string{"one"}, State: groupview.StateActive},
			{Topic: "Orders", Broker: "broker-a", ID: 1, Owners: []string{"one"}, State: groupview.StateHeld, Hold: "offsets_lost"},
			{Topic: "Orders", Broker: "broker-b", ID: 0, State: groupview.StateUnknown},
			{Topic: "Refunds", Broker: "broker-b", ID: 7, State: groupview.StateUnknown},
		},
		Gaps: []groupview.Gap{{What: "the members at broker broker-b", Err: errGone}, {What: "the queues of Bills", Topic: "Bills", Err: errSilent}},
	}
	for name, c := range map[string]struct {
		topic  string
		places []Place
		held   int
		says   string
		not    string
	}{
		"all":           {"", nil, 1, "whether another queue of group billing is held for want of a position is not known: the members at broker broker-b, the queues of Bills could not be seen", ""},
		"topic":         {"Orders", nil, 1, "another queue of group billing is held for want of a position is not known: the members at broker broker-b could not", "Bills"},
		"none of topic": {"Refunds", nil, 0, "whether a queue of group billing is held for want of a position is not known: the members at broker broker-b could not", "no queue"},
		"no such topic": {"Bills", nil, 0, "the members at broker broker-b, the queues of Bills could not be seen", "has no topic"},
		"place":         {"", []Place{{"broker-a", 1}}, 1, "", ""},
		"active place":  {"", []Place{{"broker-a", 0}}, 0, "Orders/broker-a/0 is not held for want of a position: it is active", "could not be seen"},
		"unknown place": {"", []Place{{"broker-b", 7}}, 0, "whether queue broker-b/7 is held for want of a position is not known", "is not held"},
		"no such place": {"", []Place{{"broker-b", 9}}, 0, "whether queue broker-b/9 is held for want of a position is not known", "has no queue"},
	} {
		held, err := Choose(g, c.topic, c.places)
		if err == nil && len(c.places) == 0 {
			err = Unseen(g, c.topic, held)
		}
		if len(held) != c.held || (err == nil) != (c.says == "") {
			t.Errorf("%s: %v, %v", name, held, err)
		}
		if err == nil {
			continue
		}
		if !strings.Contains(err.Error(), c.says) || c.not != "" && strings.Contains(err.Error(), c.not) {
			t.Errorf("%s: %v", name, err)
		}
		if blind := strings.Contains(err.Error(), "could not be seen"); blind != errors.Is(err, errGone) {
			t.Errorf("%s: %v does not wrap why", name, err)
		}
	}
}

func TestPlan(t *testing.T) {
	held := map[sdk.Queue]runtime.HoldKind{orders(1): runtime.HoldOffsetsLost}
	for name, c := range map[string]struct {
		at    Position
		fake  fake
		want  int64
		wrong string
	}{
		"min":           {Position{}, fake{held: held}, 100, ""},
		"max":           {Position{kind: atMax}, fake{held: held}, 200, ""},
		"first offset":  {Position{kind: atOffset, offset: 100}, fake{held: held}, 100, ""},
		"end":           {Position{kind: atOffset, offset: 200}, fake{held: held}, 200, ""},
		"before":        {Position{kind: atOffset, offset: 99}, fake{held: held}, 0, "has no offset 99: it begins at 100 and ends at 200"},
		"behind":        {Position{kind: atOffset, offset: 201}, fake{held: held}, 0, "has no offset 201"},
		"time":          {AtTime(time.Now()), fake{held: held, at: 150}, 150, ""},
		"early time":    {AtTime(time.Now()), fake{held: held, at: 7}, 100, ""},
		"late time":     {AtTime(time.Now()), fake{held: held, at: 900}, 200, ""},
		"held no more":  {Position{}, fake{}, 0, "no longer held by one"},
		"held for more": {Position{}, fake{held: map[sdk.Queue]runtime.HoldKind{orders(1): runtime.HoldPluginDown}}, 0, "no longer held by one"},
		"its own":       {Position{}, fake{held: held, committed: 100}, 0, "choose another"},
		"silent":        {Position{}, fake{held: held, silent: errGone}, 0, "asking member one"},
	} {
		steps, err := Plan(t.Context(), &c.fake, "billing", lost(1), c.at)
		switch {
		case len(c.fake.stored) != 0:
			t.Errorf("%s: stored %v", name, c.fake.stored)
		case c.wrong != "":
			if err == nil || !strings.Contains(err.Error(), c.wrong) || steps != nil {
				t.Errorf("%s: %v, %v", name, steps, err)
			}
		case err != nil || !slices.Equal(steps, []Step{{"Orders", "broker-a", 1, "one", "offsets_lost", c.want, 100, 200, StatePlanned}}):
			t.Errorf("%s: %+v, %v", name, steps, err)
		}
	}
}

func TestRelease(t *testing.T) {
	kinds := map[sdk.Queue]runtime.HoldKind{orders(1): runtime.HoldOffsetsLost, orders(2): runtime.HoldOutOfRange}
	soon := map[sdk.Queue]time.Duration{orders(1): 3300 * time.Millisecond, orders(2): 6300 * time.Millisecond}
	for name, c := range map[string]struct {
		fake   fake
		states [2]string
		within time.Duration
		wrong  []string
	}{
		"taken": {fake{takes: soon}, [2]string{StateTaken, StateTaken}, 8 * time.Second, nil},
		"left":  {fake{takes: soon, leaves: true}, [2]string{StateLeft, StateLeft}, 8 * time.Second, nil},
		"not taken": {
			fake{takes: map[sdk.Queue]time.Duration{orders(1): time.Second}},
			[2]string{StateTaken, StateStored},
			21 * time.Second,
			[]string{"Orders/broker-a/2 is not seen to go on: offset 100 is stored and stays, and its owner one"},
		},
		"reset waits": {
			fake{takes: soon, resets: map[sdk.Queue]bool{orders(1): true}},
			[2]string{StatePlanned, StateTaken},
			8 * time.Second,
			[]string{"a reset of Orders/broker-a/1 waits at its broker, which ignored offset 100"},
		},
		"refused": {
			fake{takes: soon, refused: map[sdk.Queue]error{orders(2): errGone}},
			[2]string{StateTaken, StatePlanned},
			5 * time.Second,
			[]string{"storing offset 100 of Orders/broker-a/2: it is gone"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				c.fake.held = kinds
				steps, err := Plan(t.Context(), &c.fake, "billing", lost(1, 2), Position{})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				err = Release(t.Context(), &c.fake, "billing", steps)
				if took := time.Since(began); took > c.within {
					t.Errorf("it took %s", took)
				}
				if got := [2]string{steps[0].State, steps[1].State}; got != c.states || (err == nil) != (len(c.wrong) == 0) {
					t.Errorf("%v, %v", got, err)
				}
				for _, w := range c.wrong {
					if err != nil && !strings.Contains(err.Error(), w) {
						t.Errorf("no %q in %v", w, err)
					}
				}
			})
		})
	}
}

func TestRelease_ownerFallsSilentOrTheCommandEnds(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		f := &fake{held: map[sdk.Queue]runtime.HoldKind{orders(1): runtime.HoldOffsetsLost}}
		steps, err := Plan(t.Context(), f, "billing", lost(1), Position{})
		if err != nil {
			t.Fatal(err)
		}
		f.silent = errGone
		if err := Release(t.Context(), f, "billing", slices.Clone(steps)); !errors.Is(err, errGone) || !strings.Contains(err.Error(), "stays") {
			t.Errorf("a silent owner: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		if err := Release(ctx, f, "billing", steps); !errors.Is(err, context.DeadlineExceeded) || steps[0].State != StateStored || f.stored[orders(1)] != 100 {
			t.Errorf("an end: %v, %+v", err, steps)
		}
	})
}

func TestText(t *testing.T) {
	var out strings.Builder
	if err := Text(&out, []Step{{"Orders", "broker-a", 1, "one", "offsets_lost", 150, 100, 200, StateTaken}}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(strings.Fields(out.String()), " "); !strings.HasSuffix(got, "Orders broker-a 1 one offsets_lost 100 200 150 taken") {
		t.Error(got)
	}
}
