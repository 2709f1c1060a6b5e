package allocate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/allocate/allocatetest"
)

func view(t *testing.T, self, text string, members ...string) allocate.View {
	t.Helper()
	return allocate.View{Group: "G", Topic: "T", Self: self, Queues: queues(t, text), Members: members}
}

func newGuard(needs allocate.Needs) *allocate.Guard {
	return allocate.NewGuard(allocate.GuardConfig{
		Identity: allocate.Identity{Strategy: "acme/nearest", Version: "1.2", Config: "-"}, Needs: needs,
	})
}

func wantMine(t *testing.T, d allocate.Decision, text string) {
	t.Helper()
	if want := queues(t, text); !slices.Equal(d.Mine, want) {
		t.Errorf("own %v, want %v (reason: %v)", d.Mine, want, d.Reason)
	}
}

// Every way in which a strategy fails, on a member that owns a verified share: the share stays, the reason names queue,
// member and rule, the command reproduces it, and the next good answer is applied.
func TestFaultsKeepTheVerifiedShare(t *testing.T) {
	good := builtin(t, allocate.NameAveragely, "").Allocate
	share := func(f allocate.MemberFunc) allocate.Ask {
		return allocate.PerMember("acme/nearest", allocate.Needs{}, f).Allocate
	}
	calls := 0
	cases := []struct {
		name string
		ask  allocate.Ask
		rule allocate.Rule
		text string
	}{
		{"repeats a queue for two members", share(func(_, _ string, q []allocate.Queue, _ []string) ([]allocate.Queue, error) {
			return q[:1], nil
		}), allocate.RuleTwoOwners, "queue T/b/0 has two owners: "},
		{"repeats a queue in a share", share(func(_, _ string, q []allocate.Queue, _ []string) ([]allocate.Queue, error) {
			return []allocate.Queue{q[0], q[0]}, nil
		}), allocate.RuleRepeated, "queue T/b/0 stands twice in the share of c"},
		{"forgets a queue", share(func(_, self string, q []allocate.Queue, m []string) ([]allocate.Queue, error) {
			if self == m[0] {
				return q[1:], nil
			}
			return nil, nil
		}), allocate.RuleUncovered, "queue T/b/0 has no owner"},
		{"forgets every queue", share(func(string, string, []allocate.Queue, []string) ([]allocate.Queue, error) {
			return nil, nil
		}), allocate.RuleUncovered, "and 8 more"},
		{"invents a queue", share(func(string, string, []allocate.Queue, []string) ([]allocate.Queue, error) {
			return []allocate.Queue{{Topic: "T", Broker: "b", ID: 77}}, nil
		}), allocate.RuleForeignQueue, "queue T/b/77 in the share of c"},
		{"names an unknown member", func(in allocate.Input) ([]int32, error) {
			return slices.Repeat([]int32{99}, len(in.Queues)), nil
		}, allocate.RuleUnknownMember, "queue T/b/0 is given to a member that does not exist"},
		{"answers too little", func(allocate.Input) ([]int32, error) { return []int32{0}, nil }, allocate.RuleLength, "1 entries for 9 queues"},
		{"leaves others out", func(in allocate.Input) ([]int32, error) {
			return slices.Repeat([]int32{allocate.NotComputed}, len(in.Queues)), nil
		}, allocate.RuleNotComputed, "queue T/b/0 was not computed"},
		{"changes its mind", func(in allocate.Input) ([]int32, error) {
			calls++
			return slices.Repeat([]int32{int32(calls % len(in.Members))}, len(in.Queues)), nil
		}, allocate.RuleUnstable, "queue T/b/0 went to c"},
		{"does not answer in time", func(allocate.Input) ([]int32, error) {
			return nil, &allocate.AskError{Kind: allocate.RuleTimeout, Err: context.DeadlineExceeded}
		}, allocate.RuleTimeout, "did not answer in time"},
		{"dies", func(allocate.Input) ([]int32, error) {
			return nil, &allocate.AskError{Kind: allocate.RuleCrash, Err: errors.New("exit status 2")}
		}, allocate.RuleCrash, "exit status 2"},
		{"dies when asked again", dieAfter(2), allocate.RuleCrash, "exit status 9"},
		{"panics", func(allocate.Input) ([]int32, error) { panic("oh") }, allocate.RuleRefused, "panic: oh"},
		{"refuses", func(allocate.Input) ([]int32, error) { return nil, errors.New("no map of zones") }, allocate.RuleRefused, "no map of zones"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g := newGuard(allocate.Needs{})
			first := g.Decide(view(t, "c1", "b:0-7", "c1", "c2"), good)
			if first.Kept || first.Reason != nil {
				t.Fatalf("a good answer was refused: %v", first.Reason)
			}
			wantMine(t, first, "b:0-3")
			grown := view(t, "c1", "b:0-8", "c1", "c2", "c3") // a queue and a member came
			d := g.Decide(grown, c.ask)
			wantMine(t, d, "b:0-3")
			if !d.Kept || d.Owner != nil || allocate.RuleOf(d.Reason) != c.rule || !strings.Contains(d.Reason.Error(), c.text) {
				t.Errorf("kept %v, owner %v, reason %v: want rule %s and %q", d.Kept, d.Owner, d.Reason, c.rule, c.text)
			}
			if d.Digest.Invalid != c.rule || d.Digest.Input == "" {
				t.Errorf("digest %v does not show the broken rule", d.Digest)
			}
			if r := d.Reproduce(); !strings.Contains(r, "streamd allocate try 'acme/nearest'") || !strings.Contains(r, `"b/8"`) {
				t.Errorf("the command does not reproduce it: %s", r)
			}
			d = g.Decide(grown, good)
			if c.rule == allocate.RuleUnstable { // broken until it is replaced
				if !d.Kept || allocate.RuleOf(d.Reason) != allocate.RuleUnstable {
					t.Errorf("a strategy that changed its mind is trusted again: %v", d)
				}
				g.Replace(allocate.GuardConfig{})
				wantMine(t, g.Decide(grown, dieAfter(0)), "b:0-3")
				d = g.Decide(grown, good)
			}
			if d.Kept || d.Reason != nil {
				t.Errorf("the next good answer was refused: %v", d.Reason)
			}
			wantMine(t, d, "b:0-2")
		})
	}
}

func dieAfter(n int) allocate.Ask {
	return func(in allocate.Input) ([]int32, error) {
		if n--; n < 0 {
			return nil, &allocate.AskError{Kind: allocate.RuleCrash, Err: errors.New("exit status 9")}
		}
		return make([]int32, len(in.Queues)), nil
	}
}

func TestUnusableViewAsksNothing(t *testing.T) {
	g := newGuard(allocate.Needs{})
	good := builtin(t, allocate.NameAveragely, "").Allocate
	g.Decide(view(t, "c1", "b:0-7", "c1", "c2"), good)
	ask := func(allocate.Input) ([]int32, error) {
		t.Error("was asked")
		return nil, nil
	}
	for name, v := range map[string]allocate.View{
		"own id missing": view(t, "c1", "b:0-7", "c2"),
		"own id doubled": view(t, "c1", "b:0-7", "c1", "c1", "c2"),
		"no member list": view(t, "c1", "b:0-7"),
		"no queues":      view(t, "c1", "", "c1", "c2"),
	} {
		d := g.Decide(v, ask)
		if !d.Kept || !errors.Is(d.Reason, allocate.ErrUnusableView) || d.Digest.Invalid != "" || d.Reproduce() != "" {
			t.Errorf("%s: %+v", name, d)
		}
		wantMine(t, d, "b:0-3")
	}
	// Queues that are known to be gone are given up; they come back with the route, as nothing new was verified.
	d := g.Decide(view(t, "c1", "b:1,3-9", "c2"), ask)
	wantMine(t, d, "b:1,3")
	d = g.Decide(view(t, "c1", "b:0-7", "c2"), ask)
	wantMine(t, d, "b:0-3")
	// Another topic knows nothing of this one's share, and a forgotten one has none.
	g.Forget("T")
	wantMine(t, g.Decide(view(t, "c1", "b:0-7", "c2"), ask), "")
}

func TestKnownQuestionsAreAskedOnceAndCompared(t *testing.T) {
	g := newGuard(allocate.Needs{})
	asked := 0
	good := func(in allocate.Input) ([]int32, error) {
		asked++
		return make([]int32, len(in.Queues)), nil
	}
	v := view(t, "c1", "b:0-3", "c1", "c2")
	for i, want := range []int{3, 4, 5} {
		if d := g.Decide(v, good); d.Reason != nil || asked != want {
			t.Fatalf("round %d: asked %d times, want %d, reason %v", i, asked, want, d.Reason)
		}
	}
	// A fresh process of the same strategy that answers otherwise is found without asking twice.
	d := g.Decide(v, func(in allocate.Input) ([]int32, error) { return slices.Repeat([]int32{1}, len(in.Queues)), nil })
	if allocate.RuleOf(d.Reason) != allocate.RuleUnstable || !d.Kept {
		t.Fatalf("another answer to a known question was taken: %+v", d)
	}
	wantMine(t, d, "b:0-3")
	if d = g.Decide(v, good); d.Reason != nil { // the verified answer is still the verified answer
		t.Error(d.Reason)
	}
	if d = g.Decide(view(t, "c1", "b:0-4", "c1", "c2"), good); allocate.RuleOf(d.Reason) != allocate.RuleUnstable {
		t.Errorf("a new question was trusted to it: %+v", d)
	}
}

func TestMinimalGroupIsChecked(t *testing.T) {
	g := newGuard(allocate.Needs{})
	n := 0
	d := g.Decide(view(t, "c1", "b:0", "c1"), func(in allocate.Input) ([]int32, error) {
		n++
		return make([]int32, len(in.Queues)), nil
	})
	if d.Reason != nil || n != 3 {
		t.Errorf("asked %d times, reason %v", n, d.Reason)
	}
	wantMine(t, d, "b:0")
}

func TestPartialNeedsConsent(t *testing.T) {
	rooms := builtin(t, allocate.NameMachineRoom, `{"rooms":["r1"]}`)
	lists := builtin(t, allocate.NameConfig, `{"queues":[{"topic":"T","broker":"r1@b","id":0}]}`)
	for _, s := range []allocate.Strategy{rooms, lists} {
		config := allocate.GuardConfig{Identity: allocate.Identity{Strategy: s.Name()}, Needs: s.Needs()}
		v := view(t, "c1", "r1@b:0 r2@b:0", "c1")
		d := allocate.NewGuard(config).Decide(v, s.Allocate)
		if !d.Kept || allocate.RuleOf(d.Reason) != allocate.RuleUncovered || !strings.Contains(d.Reason.Error(), "allow_uncovered: true") {
			t.Errorf("%s: applied without consent: %+v", s.Name(), d)
		}
		config.AllowUncovered = true
		d = allocate.NewGuard(config).Decide(v, s.Allocate)
		if d.Reason != nil {
			t.Fatal(d.Reason)
		}
		wantMine(t, d, "r1@b:0")
		if s == rooms && !slices.Equal(d.Uncovered, queues(t, "r2@b:0")) {
			t.Errorf("uncovered %v", d.Uncovered)
		}
	}
}

// The whole way to the fallback: all show the same invalid digest; it stays for this input even if one recovers, and
// ends with the next input.
func TestFallback(t *testing.T) {
	average := builtin(t, allocate.NameAveragely, "")
	broken := func(in allocate.Input) ([]int32, error) { return slices.Repeat([]int32{-1}, len(in.Queues)), nil }
	v1, v2 := view(t, "c1", "b:0-3", "c1", "c2"), view(t, "c2", "b:0-3", "c1", "c2")
	g1, g2 := newGuard(allocate.Needs{}), newGuard(allocate.Needs{})
	d1, d2 := g1.Decide(v1, broken), g2.Decide(v2, broken)
	peer := allocate.Peer{ClientID: "c2", Kind: allocate.PeerStreamd, Digests: map[string]allocate.Digest{"T": d2.Digest}}
	if !allocate.AgreeInvalid(d1.Digest, d1.Input, []allocate.Peer{peer}) {
		t.Fatalf("%v and %v do not agree", d1.Digest, d2.Digest)
	}
	reason := fmt.Errorf("every member shows the same invalid answer: %w", d1.Reason)
	d1 = g1.UseFallback(v1, average, reason)
	if d1.Kept || d1.Fallback != "averagely" || !errors.Is(d1.Reason, reason) || d1.Digest.Invalid != allocate.RuleUncovered {
		t.Errorf("%+v", d1)
	}
	wantMine(t, d1, "b:0,1")
	if d1 = g1.Decide(v1, average.Allocate); d1.Fallback != "averagely" || d1.Digest != d2.Digest {
		t.Errorf("one that recovers alone left the fallback: %+v", d1)
	}
	d1 = g1.Decide(view(t, "c1", "b:0-3", "c1"), average.Allocate)
	if d1.Fallback != "" || d1.Reason != nil {
		t.Errorf("the fallback outlived its input: %+v", d1)
	}
	wantMine(t, d1, "b:0-3")
	// With a foreign member the fallback is not bound to the strategy's fault.
	d2 = newGuard(allocate.Needs{}).UseFallback(v2, average, errors.New("a Java member"))
	wantMine(t, d2, "b:2,3")
	if d2.Digest.Strategy != "averagely" || d2.Digest.Invalid != "" || d2.Digest.Result == "" || d2.Digest.Input != allocate.HashInput(d2.Input) {
		t.Errorf("the fallback's digest is %+v", d2.Digest)
	}
	mixed := allocate.CheckPeers("acme/nearest", []allocate.Peer{{ClientID: "j", Kind: allocate.PeerJava}})
	d2 = newGuard(allocate.Needs{}).Decide(v2, func(allocate.Input) ([]int32, error) { return nil, mixed })
	if !d2.Kept || d2.Digest.Invalid != "" || !errors.Is(d2.Reason, mixed) {
		t.Errorf("a mixed group was held against the strategy: %+v", d2)
	}
	// A fallback that fails keeps the share.
	d2 = g2.UseFallback(v2, builtin(t, allocate.NameMachineRoomNearby, ""), reason)
	if !d2.Kept || d2.Fallback != "" || !strings.Contains(d2.Reason.Error(), "names no room") {
		t.Errorf("%+v", d2)
	}
}

func TestAgreeInvalidNeedsEveryMember(t *testing.T) {
	in := allocatetest.Input(t, queues(t, "b:0-3"), []string{"c1", "c2", "c3"})
	own := allocate.Digest{Identity: allocate.Identity{Strategy: "s", Version: "1"}, Input: "i", Result: "r", Invalid: allocate.RuleUncovered}
	peer := func(id string, change func(*allocate.Digest)) allocate.Peer {
		d := own
		change(&d)
		return allocate.Peer{ClientID: id, Kind: allocate.PeerStreamd, Digests: map[string]allocate.Digest{"T": d}}
	}
	same := func(*allocate.Digest) {}
	third := peer("c3", same)
	for name, c := range map[string]struct {
		peers []allocate.Peer
		want  bool
	}{
		"all the same":  {[]allocate.Peer{peer("c2", same), third}, true},
		"one silent":    {[]allocate.Peer{third}, false},
		"one unknown":   {[]allocate.Peer{{ClientID: "c2"}, third}, false},
		"one Java":      {[]allocate.Peer{{ClientID: "c2", Kind: allocate.PeerJava}, third}, false},
		"one valid":     {[]allocate.Peer{peer("c2", func(d *allocate.Digest) { d.Invalid = "" }), third}, false},
		"other result":  {[]allocate.Peer{peer("c2", func(d *allocate.Digest) { d.Result = "x" }), third}, false},
		"other rule":    {[]allocate.Peer{peer("c2", func(d *allocate.Digest) { d.Invalid = allocate.RuleCrash }), third}, false},
		"other input":   {[]allocate.Peer{peer("c2", func(d *allocate.Digest) { d.Input = "x" }), third}, false},
		"other version": {[]allocate.Peer{peer("c2", func(d *allocate.Digest) { d.Version = "2" }), third}, false},
	} {
		if got := allocate.AgreeInvalid(own, in, c.peers); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	valid := own
	valid.Invalid = ""
	if allocate.AgreeInvalid(valid, in, []allocate.Peer{third}) {
		t.Error("a valid answer led to the fallback")
	}
}
