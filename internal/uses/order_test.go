package uses_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/uses"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// A handler that declares that it cannot keep order is refused by each stream that wants order, where that is written.
func TestCheck_order(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "streamd.yaml")
	text := `brokers: [{name: main, name_servers: ["127.0.0.1:9876"]}]
plugins: [{name: acme, command: [acme]}]
handlers: [{name: bulk, plugin: acme, use: bulk}, {name: one, plugin: acme, use: one}]
streams:
  - {name: a, handler: bulk, group: a, subscribe: [{topic: Orders}], order: queue}
  - {name: b, handler: bulk, group: b, subscribe: [{topic: Orders}]}
  - {name: c, handler: bulk, group: c, subscribe: [{topic: Orders}], order: "key"}
  - {name: d, handler: one, group: d, subscribe: [{topic: Orders}], order: key}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(config.Options{Paths: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	offers := []*pluginv1.Component{
		{Name: "bulk", Kind: pluginv1.Component_KIND_HANDLER, Unordered: "items fail one by one"}, {Name: "one", Kind: pluginv1.Component_KIND_HANDLER},
	}
	var got []string
	for _, u := range uses.Of(loaded.Config) {
		found, err := u.Check(offers)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range found {
			got = append(got, p.String())
		}
	}
	want := []string{
		path + ":5:77: stream a has order: queue, and handler bulk (bulk of plugin acme) does not keep order: items fail one by one; write order: none, or a handler that keeps order",
		path + ":7:77: stream c has order: key, and handler bulk (bulk of plugin acme) does not keep order: items fail one by one; write order: none, or a handler that keeps order",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A stream that begins to want order is something new for its handler; one that only takes another order is not.
func TestOrderedAs(t *testing.T) {
	t.Parallel()
	of := func(orders ...uses.Ordered) uses.Use { return uses.Use{Ordered: orders} }
	a, b := uses.Ordered{Stream: "a", Order: "queue"}, uses.Ordered{Stream: "b", Order: "key"}
	for _, c := range []struct {
		now, before uses.Use
		want        bool
	}{
		{of(), of(), true},
		{of(), of(a), true},
		{of(a), of(a, b), true},
		{of(a), of(), false},
		{of(a, b), of(b), false},
		{of(uses.Ordered{Stream: "a", Order: "key"}), of(a), true},
	} {
		if got := c.now.OrderedAs(c.before); got != c.want {
			t.Errorf("%v after %v: %t", c.now.Ordered, c.before.Ordered, got)
		}
	}
}
