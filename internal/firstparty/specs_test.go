package firstparty_test

import (
	"slices"
	"testing"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/allocate/allocatetest"
	"github.com/streamd/streamd/internal/firstparty"
	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/pluginv1"
	"github.com/streamd/streamd/sdk/serve"
)

func TestSpecsAreAllStrategies(t *testing.T) {
	var names []string
	for _, s := range firstparty.Specs() {
		names = append(names, s.Name)
		if s.Kind != sdk.KindStrategy || s.Summary == "" {
			t.Errorf("%s: kind %d, summary %q", s.Name, s.Kind, s.Summary)
		}
	}
	if !slices.Equal(names, allocate.Names()) {
		t.Errorf("served are %v, allocate has %v", names, allocate.Names())
	}
}

// The served strategy reads the same config and answers as the one computed in process: Java's tables go both ways.
func TestServedAnswersAsInProcess(t *testing.T) {
	for _, c := range allocatetest.JavaCases() {
		t.Run(c.Row, func(t *testing.T) {
			all, err := allocatetest.ParseQueues(c.Topic, c.Queues)
			if err != nil {
				t.Fatal(err)
			}
			in := allocatetest.Input(t, all, c.Members)
			local, err := allocate.New(c.Strategy, []byte(c.Config))
			if err != nil {
				t.Fatal(err)
			}
			want, wantErr := local.Allocate(in)
			response, err := served(t, c.Strategy, c.Config).Solve(t.Context(), request(in))
			if (err == nil) != (wantErr == nil) || !slices.Equal(response.GetOwner(), want) {
				t.Errorf("served: %v, %v; in process: %v, %v", response.GetOwner(), err, want, wantErr)
			}
		})
	}
}

func served(t *testing.T, name, config string) serve.Solver {
	t.Helper()
	for _, s := range firstparty.Specs() {
		if s.Name != name {
			continue
		}
		instance, diagnostics := s.New(t.Context(), []byte(config), sdk.Env{})
		solver, ok := instance.(serve.Solver)
		if !ok {
			t.Fatalf("%s with %s: %v", name, config, diagnostics)
		}
		return solver
	}
	t.Fatalf("%s is not served", name)
	return nil
}

func request(in allocate.Input) *pluginv1.SolveRequest {
	r := &pluginv1.SolveRequest{Group: in.Group, Topic: in.Topic, Self: int32(in.Self)}
	for _, q := range in.Queues {
		r.Queues = append(r.Queues, &pluginv1.Queue{Topic: q.Topic, Broker: q.Broker, Id: q.ID})
	}
	for _, m := range in.Members {
		r.Members = append(r.Members, &pluginv1.Member{ClientId: m.ClientID, Attributes: m.Attributes})
	}
	return r
}

// What is wrong with a config is said by both sides: here through the served component's schema and check.
func TestServedRefusesBadConfigs(t *testing.T) {
	for _, c := range []struct{ name, config string }{
		{allocate.NameMachineRoom, ``},
		{allocate.NameMachineRoom, `{"room":["a"]}`},
		{allocate.NameConsistentHash, `{"virtual_nodes":-1}`},
		{allocate.NameMachineRoomNearby, `{"inner":"config"}`},
		{allocate.NameConfig, `{"queues":[{"broker":"b","id":1}]}`},
	} {
		for _, s := range firstparty.Specs() {
			if s.Name == c.name {
				if instance, diagnostics := s.New(t.Context(), []byte(c.config), sdk.Env{}); instance != nil || len(diagnostics) == 0 {
					t.Errorf("%s with %s was built: %v", c.name, c.config, instance)
				}
			}
		}
	}
}
