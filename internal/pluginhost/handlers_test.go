package pluginhost_test

import (
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/pluginhost"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// handlerStatus is what the status says of one handler.
func (b *bench) handlerStatus(name string) (found pluginhost.HandlerStatus, ok bool) {
	b.t.Helper()
	for _, p := range b.host.Status() {
		for _, h := range p.Handlers {
			if h.Name == name {
				return h, true
			}
		}
	}
	return found, false
}

// A change that is refused leaves no trace: not in the status, not in the log, not in what is tried again.
func TestConfigure_refusedChangeLeavesNoTrace(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := spec(t, "acme", "ok")
	s.Instances = 2
	b.apply(s)
	eventually(t, "both processes are ready", func() bool {
		ps := b.host.Status()[0].Processes
		return len(ps) == 2 && ps[0].State == "ready" && ps[1].State == "ready"
	})
	good := pluginhost.HandlerSpec{Name: "billing", Plugin: "acme", Use: "main", Config: []byte(`{"currency":"EUR"}`)}
	if said, err := b.host.Configure(within(t, patience), good); err != nil || len(said) > 0 {
		t.Fatalf("%v, %v", said, err)
	}
	before, _ := b.handlerStatus("billing")
	bad := good
	bad.Config = []byte(`{"bad":1}`)
	said, err := b.host.Configure(within(t, patience), bad)
	if err == nil || len(said) != 1 || said[0].Pointer != "/bad" {
		t.Fatalf("%v, %v", said, err)
	}
	after, _ := b.handlerStatus("billing")
	if after.Error != "" || after.ConfigHash != before.ConfigHash || len(after.Diagnostics) > 0 {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if log := b.logs.String(); strings.Contains(log, "not in force") {
		t.Errorf("the log says that it is not in force:\n%s", log)
	}
	if l := b.open(laneSpec("billing")); l.Info().ConfigHash != before.ConfigHash {
		t.Error("a new lane has another config")
	}
}

// What is taken back is as it was: also a config that was refused when it came, and a handler that was not there.
func TestRestore(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.apply(spec(t, "acme", "ok"))
	first := pluginhost.HandlerSpec{Name: "billing", Plugin: "acme", Use: "main", Config: []byte(`{"bad":1}`)}
	second := first
	second.Config = nil
	for _, spec := range []pluginhost.HandlerSpec{first, second} {
		if _, err := b.host.Configure(within(t, patience), spec); err != nil {
			t.Fatal(err)
		}
	}
	if h, _ := b.handlerStatus("billing"); h.Error != "" {
		t.Fatalf("%+v", h)
	}
	b.host.Restore(within(t, patience), first)
	if h, _ := b.handlerStatus("billing"); !strings.Contains(h.Error, "/bad: is not known") {
		t.Errorf("%+v", h)
	}
	b.host.Unconfigure("billing")
	if h, ok := b.handlerStatus("billing"); ok {
		t.Errorf("still there: %+v", h)
	}
}

// A config that is only checked is nobody's: no status, no lane, and the plugin's word is told.
func TestCheck(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.apply(spec(t, "acme", "ok"))
	rule := pluginhost.HandlerSpec{Name: "allocation of orders", Plugin: "acme", Kind: pluginv1.Component_KIND_STRATEGY, Config: []byte(`{"bad":1}`)}
	said, err := b.host.Check(within(t, patience), rule)
	if err != nil || len(said) != 1 || said[0].Pointer != "/bad" {
		t.Errorf("%v, %v", said, err)
	}
	rule.Config = nil
	if said, err = b.host.Check(within(t, patience), rule); err != nil || len(said) > 0 {
		t.Errorf("%v, %v", said, err)
	}
	if _, ok := b.handlerStatus(rule.Name); ok {
		t.Error("what was only checked is in the status")
	}
	rule.Use = "main"
	if _, err = b.host.Check(within(t, patience), rule); err == nil || !strings.Contains(err.Error(), "main of plugin acme is a handler, and is used as a strategy") {
		t.Errorf("%v", err)
	}
}

// TestCheck_leavesNothingBehind: what a plugin builds to judge a config, it closes. What a handler has stays.
func TestCheck_leavesNothingBehind(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.apply(author(t))
	billing := pluginhost.HandlerSpec{Name: "billing", Plugin: "author", Config: []byte(`{"currency":"EUR"}`)}
	if said, err := b.host.Configure(within(t, patience), billing); err != nil || len(said) > 0 {
		t.Fatalf("%v, %v", said, err)
	}
	if said, err := b.host.Check(within(t, patience), billing); err != nil || len(said) > 0 {
		t.Fatalf("%v, %v", said, err)
	}
	eventually(t, "one is built and closed again", func() bool {
		return b.logs.Has("built check of billing") && b.logs.Has("closed check of billing")
	})
	if b.logs.Has("closed billing") {
		t.Error("the handler's own instance was closed")
	}
}

// Left out, a component is the only one of its kind.
func TestChoose(t *testing.T) {
	both := []*pluginv1.Component{{Name: "invoice", Kind: pluginv1.Component_KIND_HANDLER}, {Name: "nearest", Kind: pluginv1.Component_KIND_STRATEGY}}
	for want, spec := range map[string]pluginhost.HandlerSpec{
		"invoice": {Plugin: "acme", Kind: pluginv1.Component_KIND_HANDLER}, "nearest": {Plugin: "acme", Kind: pluginv1.Component_KIND_STRATEGY},
	} {
		if c, err := pluginhost.Choose(both, spec); err != nil || c.GetName() != want {
			t.Errorf("%s: %v, %v", want, c, err)
		}
	}
	for want, spec := range map[string]pluginhost.HandlerSpec{
		"invoice of plugin acme is a handler, and is used as a strategy":       {Plugin: "acme", Use: "invoice", Kind: pluginv1.Component_KIND_STRATEGY},
		`no component "x"; it offers handler invoice, strategy nearest`:        {Plugin: "acme", Use: "x"},
		"offers several components (handler invoice, strategy nearest); name ": {Plugin: "acme"},
	} {
		if c, err := pluginhost.Choose(both, spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v, want %q", c, err, want)
		}
	}
	if _, err := pluginhost.Choose(both[:1], pluginhost.HandlerSpec{Plugin: "acme", Kind: pluginv1.Component_KIND_STRATEGY}); err == nil || !strings.Contains(err.Error(), "offers no strategy; it offers handler invoice") {
		t.Errorf("%v", err)
	}
}
