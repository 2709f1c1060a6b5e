package uses_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/uses"
)

// What is wrong with the config of a strategy of streamd's own is found without a process: by its schema, or by the strategy.
func TestCheckBuiltin(t *testing.T) {
	t.Parallel()
	for allocation, want := range map[string][]string{
		"{}":                 nil,
		"{strategy: sticky}": nil,
		"{strategy: consistent_hash, config: {virtual_nodes: 3}}":           nil,
		"{plugin: acme, use: nearest, config: {anything: 1}}":               nil, // its plugin's to judge
		"{strategy: averagely, config: {x: 1}}":                             {`unknown key "x"`},
		"{strategy: consistent_hash, config: {virtual_nodes: many}}":        {"virtual_nodes is string, not integer"},
		"{strategy: config, config: {queues: [{topic: T, broker: b}, {}]}}": {`queues lacks the key "id"`, `queues lacks the key "topic"`, `queues lacks the key "broker"`, `queues lacks the key "id"`},
		"{strategy: machine_room, config: {rooms: []}}":                     {"strategy machine_room needs rooms: the part before '@' of the names of the brokers to read"},
		"{strategy: machine_room_nearby, config: {inner: sticky}}":          {"inner has a value that is not allowed"},
	} {
		c := load(t, allocation)
		err := uses.CheckBuiltin(c)
		if want == nil {
			if err != nil {
				t.Errorf("%s: %v", allocation, err)
			}
			continue
		}
		var invalid *config.InvalidError
		if !errors.As(err, &invalid) {
			t.Errorf("%s: %v", allocation, err)
			continue
		}
		var got []string
		for _, p := range invalid.Problems {
			if p.Where.Line != 5 || p.Where.Column < 16 {
				t.Errorf("%s: at %s", allocation, p.Where)
			}
			got = append(got, p.What)
		}
		prefix := "the allocation of stream orders (" + c.Streams[0].Allocation.Strategy + "): "
		for i := range want {
			want[i] = prefix + want[i]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", allocation, diff)
		}
	}
}

func load(t *testing.T, allocation string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "streamd.yaml")
	text := `brokers: [{name: main, name_servers: ["127.0.0.1:9876"]}]
plugins: [{name: acme, command: [acme]}]
handlers: [{name: billing, plugin: acme}]
streams:
  - {allocation: ` + allocation + `, name: orders, group: g, subscribe: [{topic: Orders}]}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(config.Options{Paths: []string{path}, Strategies: allocate.Names()})
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Config
}
