package serve_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/pluginv1"
	"github.com/streamd/streamd/sdk/sdktest"
	"github.com/streamd/streamd/sdk/serve"
)

type greeting struct {
	Word string `json:"word" required:"true"`
}

// greeter emits its word, and says when it is closed.
type greeter struct {
	word   string
	closed chan string
}

func (g *greeter) Handle(_ context.Context, m *sdk.Message) error {
	m.Emit(sdk.Output{Topic: "Greetings", Body: []byte(g.word)})
	return nil
}

func (g *greeter) Close() error {
	g.closed <- g.word
	return nil
}

// counted is a component that knows how many of it there are.
type counted struct{ alive *atomic.Int32 }

func (c counted) Handle(context.Context, *sdk.Message) error { return nil }

func (c counted) Close() error {
	c.alive.Add(-1)
	return nil
}

// TestConfigure_dryRun judges a config and leaves no instance behind, nor does it take the place of one.
func TestConfigure_dryRun(t *testing.T) {
	var alive, built atomic.Int32
	server, err := serve.NewServer(sdk.Info{Name: "p", Version: "1"}, []sdk.Spec{sdk.Component("h", func(context.Context, greeting, sdk.Env) (counted, error) {
		alive.Add(1)
		built.Add(1)
		return counted{&alive}, nil
	})}, slog.New(slog.DiscardHandler), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	configure := func(config string, dryRun bool) []*pluginv1.Diagnostic {
		r, err := server.Configure(t.Context(), &pluginv1.ConfigureRequest{Instance: "h", Component: "h", ConfigJson: []byte(config), DryRun: dryRun})
		if err != nil {
			t.Fatal(err)
		}
		return r.GetDiagnostics()
	}
	for range 3 {
		if d := configure(`{"word":"hi"}`, true); len(d) != 0 || alive.Load() != 0 {
			t.Errorf("a dry run: %v, %d instances", d, alive.Load())
		}
	}
	if d := configure(`{}`, true); len(d) != 1 || d[0].GetPointer() != "/word" {
		t.Errorf("a dry run of a bad config: %v", d)
	}
	configure(`{"word":"hi"}`, false)
	configure(`{"word":"bye"}`, true)
	if alive.Load() != 1 || built.Load() != 5 {
		t.Errorf("%d instances of %d that were built; the one of before the dry run has to stay", alive.Load(), built.Load())
	}
}

// TestConfigureAgain: a reload changes the config of a handler at work. Lanes keep the instance they were opened with, new
// ones get the new one, and the old one is closed after its last lane.
func TestConfigureAgain(t *testing.T) {
	closed := make(chan string, 2)
	plugin := sdktest.Start(t, sdk.Component("h", func(_ context.Context, c greeting, _ sdk.Env) (*greeter, error) {
		return &greeter{c.Word, closed}, nil
	}))
	old := plugin.Configure("h", `{"word":"hi"}`).Open(sdktest.Options{})
	again := plugin.Configure("h", `{"word":"bye"}`).Open(sdktest.Options{})
	for _, c := range []struct {
		lane *sdktest.Lane
		word string
	}{{old, "hi"}, {again, "bye"}} {
		r := c.lane.Wait(c.lane.Send(sdktest.Message{ID: "1"}), 1)[0]
		if r.Kind != sdktest.Acked || len(r.Outputs) != 1 || string(r.Outputs[0].Body) != c.word {
			t.Errorf("%+v, want an output %q", r, c.word)
		}
	}
	select {
	case word := <-closed:
		t.Fatalf("%s was closed while a lane had it", word)
	default:
	}
	old.Drain()
	if word := <-closed; word != "hi" {
		t.Errorf("%s was closed, want hi", word)
	}
	again.Drain()
}
