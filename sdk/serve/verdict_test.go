package serve_test

import (
	"context"
	"testing"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/sdktest"
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
