package firstparty_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/streamd/streamd/internal/firstparty"
	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/serve"
)

// serveMode makes the test binary a plugin, as `streamd serve-plugin allocate` makes the streamd binary one.
const serveMode = "FIRSTPARTY_TEST_SERVES"

func TestMain(m *testing.M) {
	switch os.Getenv(serveMode) {
	case "allocate":
		serve.Main(sdk.Info{Name: firstparty.PluginName, Version: "test"}, firstparty.Specs()...)
	case "broken":
		serve.Main(sdk.Info{Name: "broken", Version: "test"}, broken()...)
	default:
		goleak.VerifyTestMain(m)
	}
}

// share is a strategy of the smallest contract.
type share func(self string, queues []sdk.Queue, members []string) ([]sdk.Queue, error)

func (share) Name() string { return "broken" }

func (f share) Allocate(_, self string, queues []sdk.Queue, members []string) ([]sdk.Queue, error) {
	return f(self, queues, members)
}

// broken are strategies that fail in each way there is.
func broken() []sdk.Spec {
	var calls atomic.Int32
	firstGetsAll := func(self string, queues []sdk.Queue, members []string) ([]sdk.Queue, error) {
		if self == members[0] {
			return queues, nil
		}
		return nil, nil
	}
	faults := map[string]share{
		"sound":   firstGetsAll,
		"repeats": func(_ string, queues []sdk.Queue, _ []string) ([]sdk.Queue, error) { return queues[:1], nil },
		"forgets": func(self string, queues []sdk.Queue, members []string) ([]sdk.Queue, error) {
			return firstGetsAll(self, queues[1:], members)
		},
		"invents": func(_ string, queues []sdk.Queue, _ []string) ([]sdk.Queue, error) {
			return []sdk.Queue{{Topic: queues[0].Topic, Broker: "nowhere", ID: 1}}, nil
		},
		"wavers": func(self string, queues []sdk.Queue, members []string) ([]sdk.Queue, error) {
			round := (int(calls.Add(1)) - 1) / 4 // of three members: calls 1-3 are one map, 6-8 the same question again
			if self == members[round%len(members)] {
				return queues, nil
			}
			return nil, nil
		},
		"hangs":  func(string, []sdk.Queue, []string) ([]sdk.Queue, error) { select {} },
		"panics": func(_ string, queues []sdk.Queue, _ []string) ([]sdk.Queue, error) { return queues[99:], nil },
		"refuses": func(string, []sdk.Queue, []string) ([]sdk.Queue, error) {
			return nil, errors.New("no map of zones")
		},
		"dies": func(string, []sdk.Queue, []string) ([]sdk.Queue, error) {
			os.Exit(3)
			return nil, nil
		},
	}
	var specs []sdk.Spec
	for name, f := range faults {
		specs = append(specs, serve.Strategy(name, func(context.Context, struct{}, sdk.Env) (share, error) { return f, nil }))
	}
	slices.SortFunc(specs, func(a, b sdk.Spec) int { return len(a.Name) - len(b.Name) })
	return specs
}
