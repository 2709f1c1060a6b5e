package serve_test

import (
	"context"
	"testing"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/sdktest"
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
