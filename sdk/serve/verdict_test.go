package serve_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/pluginv1"
	"github.com/streamd/streamd/sdk/sdktest"
	"github.com/streamd/streamd/sdk/serve"
)

// trap is an error that cannot be read when it is a nil pointer.
type trap struct{ text string }

func (e *trap) Error() string { return e.text }

// nothing is what a function returns that names its error's type: not nil, and fatal to look at.
func nothing() error {
	var e *trap
	return e
}

type trapAsync struct{}

func (trapAsync) HandleAsync(_ context.Context, _ *sdk.Message, done func(error)) { go done(nothing()) }
func (trapAsync) Flush(context.Context) error                                     { return nil }

// An error that panics when it is read is the message's failure, as a panic of the handler is: the process lives, so its
// neighbors are answered.
func TestAnErrorThatPanicsIsAPanic(t *testing.T) {
	for name, spec := range map[string]sdk.Spec{
		"handler": handler(func(_ context.Context, m *sdk.Message) error {
			if m.ID() == "1" {
				return nothing()
			}
			return nil
		}),
		"batch": sdk.BatchComponent("h", func(context.Context, none, sdk.Env) (sdk.BatchHandler, error) {
			return sdk.BatchHandlerFunc(func(_ context.Context, b *sdk.Batch) error {
				for i, m := range b.All() {
					if m.ID() == "1" {
						b.Fail(i, nothing())
					}
				}
				return nil
			}), nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			got := sdktest.Start(t, spec).Configure("h", "").Deliver(messages(3)...)
			if got[1].Kind != sdktest.Retried || got[1].Class != sdk.ClassPanic {
				t.Errorf("%+v", got[1])
			}
			if got[0].Kind != sdktest.Acked || got[2].Kind != sdktest.Acked {
				t.Errorf("its neighbors: %+v, %+v", got[0], got[2])
			}
		})
	}
	t.Run("async", func(t *testing.T) {
		spec := sdk.AsyncComponent("h", func(context.Context, none, sdk.Env) (sdk.AsyncHandler, error) { return trapAsync{}, nil })
		for i, r := range sdktest.Start(t, spec).Configure("h", "").Deliver(messages(2)...) {
			if r.Kind != sdktest.Retried || r.Class != sdk.ClassPanic {
				t.Errorf("message %d: %+v", i, r)
			}
		}
	})
}

// trapped is a config whose fields and Validate give errors that cannot be read.
type trapped struct {
	From     string  `json:"from"`
	Text     badText `json:"text"`
	Own      badJSON `json:"own"`
	AtOnce   bool    `json:"at_once"`
	Together bool    `json:"together"`
}

type badText struct{}

func (*badText) UnmarshalText([]byte) error { return nothing() }

type badJSON struct{}

func (*badJSON) UnmarshalJSON([]byte) error { return nothing() }

func (c *trapped) Validate() error {
	switch {
	case c.AtOnce:
		panic("no")
	case c.Together:
		return errors.Join(sdk.At("/together", nothing()), sdk.At("/from", errors.New("is empty")))
	case c.From == "validate":
		return sdk.At("/from", nothing())
	}
	return nil
}

// An error of a constructor or of a config that panics when it is read is a diagnostic, as a panic of them is: the plugin
// lives, and the next config is taken.
func TestAConfigErrorThatPanicsIsADiagnostic(t *testing.T) {
	component := sdk.Component("h", func(_ context.Context, c trapped, _ sdk.Env) (sdk.Handler, error) {
		if c.From == "build" {
			return nil, nothing()
		}
		return sdk.HandlerFunc(func(context.Context, *sdk.Message) error { return nil }), nil
	})
	strategy := serve.Strategy("s", func(_ context.Context, c trapped, _ sdk.Env) (share, error) {
		if c.From == "build" {
			return nil, nothing()
		}
		return func(string, []sdk.Queue, []string) ([]sdk.Queue, error) { return nil, nil }, nil
	})
	p := sdktest.Start(t, component, strategy)
	for _, name := range []string{"h", "s"} {
		for config, pointers := range map[string][]string{
			`{"from":"build"}`:    {""},
			`{"from":"validate"}`: {"/from"},
			`{"text":"x"}`:        {"/text"},
			`{"own":{}}`:          {"/own"},
			`{"at_once":true}`:    {""},
			`{"together":true}`:   {"/from", "/together"},
		} {
			got := p.Check(name, config)
			if len(got) != len(pointers) {
				t.Errorf("%s with %s: %+v", name, config, got)
				continue
			}
			for i, d := range got {
				readable := config == `{"together":true}` && d.Pointer == "/from"
				if d.Pointer != pointers[i] || d.Severity != sdk.SeverityError || strings.Contains(d.Text, "panic") == readable {
					t.Errorf("%s with %s: %+v, want it at %q", name, config, d, pointers[i])
				}
				if config != `{"at_once":true}` && !readable && !strings.Contains(d.Text, "*serve_test.trap") {
					t.Errorf("%s with %s: %q does not name the error's type", name, config, d.Text)
				}
			}
		}
		if got := p.Check(name, `{}`); len(got) > 0 {
			t.Errorf("%s refuses a good config afterwards: %+v", name, got)
		}
	}
}

// sticky cannot be closed, flushed or told of queues without an error that cannot be read.
type sticky struct{}

func (sticky) HandleAsync(_ context.Context, _ *sdk.Message, done func(error)) { done(nil) }
func (sticky) Flush(context.Context) error                                     { return nothing() }
func (sticky) Revoked(context.Context, []sdk.Queue) error                      { return nothing() }
func (sticky) Close() error                                                    { return nothing() }

// What is only logged does not end the plugin either.
func TestALoggedErrorThatPanicsIsHarmless(t *testing.T) {
	spec := sdk.AsyncComponent("h", func(context.Context, none, sdk.Env) (sdk.AsyncHandler, error) { return sticky{}, nil })
	p := sdktest.Start(t, spec)
	h := p.Configure("h", "")
	lane := h.Open(sdktest.Options{})
	lane.Revoke(sdk.Queue{Topic: "T", Broker: "b"})
	lane.Drain()
	allAcked(t, p.Configure("h", "").Deliver(messages(2)...)) // which closes the one before
}

// A strategy that answers with such an error has refused, and is asked again.
func TestAStrategyErrorThatPanicsIsItsAnswer(t *testing.T) {
	for name, s := range map[string]serve.Solver{
		"member": solver(t, share(func(string, []sdk.Queue, []string) ([]sdk.Queue, error) { return nil, nothing() })),
		"whole":  solver(t, whole(func(sdk.StrategyInput) ([]int32, error) { return nil, nothing() })),
	} {
		spec := sdk.Configured(name, func(context.Context, none, sdk.Env) (serve.Solver, error) { return s, nil })
		spec.Kind = sdk.KindStrategy
		server, err := serve.NewServer(sdk.Info{Name: "p"}, []sdk.Spec{spec}, slog.New(slog.DiscardHandler), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := server.Configure(t.Context(), &pluginv1.ConfigureRequest{Instance: "i", Component: name}); err != nil {
			t.Fatal(err)
		}
		request := question()
		request.Instance = "i"
		for range 2 {
			if got, err := server.Solve(t.Context(), request); err != nil || got.GetError() == "" {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		}
		server.Close()
	}
}
