// Command strategist is a plugin of strategies that are sound until a file is there, and then fail each in its own way.
package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/serve"
)

// Config names the file.
type Config struct {
	Spoiled string `json:"spoiled" required:"true" doc:"file whose presence makes the strategy fail"`
}

// Validate refuses a name that no file has.
func (c Config) Validate() error {
	if c.Spoiled == "never" {
		return sdk.At("/spoiled", errors.New("never is no file"))
	}
	return nil
}

type allocate func(self string, queues []sdk.Queue, members []string) []sdk.Queue

// strategy is one way to fail.
type strategy struct {
	Config
	name  string
	fault allocate
}

// Name implements sdk.MemberStrategy.
func (s strategy) Name() string { return s.name }

// Allocate implements sdk.MemberStrategy.
func (s strategy) Allocate(_, self string, queues []sdk.Queue, members []string) ([]sdk.Queue, error) { //nolint:unparam // the interface has an error
	if _, err := os.Stat(s.Spoiled); err == nil {
		return s.fault(self, queues, members), nil
	}
	return firstGetsAll(self, queues, members), nil
}

func firstGetsAll(self string, queues []sdk.Queue, members []string) []sdk.Queue {
	if self == members[0] {
		return queues
	}
	return nil
}

func repeats(_ string, queues []sdk.Queue, _ []string) []sdk.Queue { return queues[:1] }

func forgets(self string, queues []sdk.Queue, members []string) []sdk.Queue {
	return firstGetsAll(self, queues[1:], members)
}

func invents(string, []sdk.Queue, []string) []sdk.Queue {
	return []sdk.Queue{{Topic: "Nowhere", Broker: "nowhere", ID: 1}}
}

// calls counts the questions.
type calls struct{ atomic.Int64 }

// wavers gives everything to whom the number of calls so far says.
func (c *calls) wavers(self string, queues []sdk.Queue, members []string) []sdk.Queue {
	turn := int(c.Add(1)/3) % len(members)
	if self == members[turn] {
		return queues
	}
	return nil
}

func hangs(self string, queues []sdk.Queue, members []string) []sdk.Queue {
	timer := time.NewTimer(10 * time.Second)
	defer timer.Stop()
	<-timer.C
	return firstGetsAll(self, queues, members)
}

func dies(string, []sdk.Queue, []string) []sdk.Queue {
	os.Exit(3)
	return nil
}

func main() {
	faults := map[string]allocate{"repeats": repeats, "forgets": forgets, "invents": invents, "wavers": new(calls).wavers, "hangs": hangs, "dies": dies}
	var specs []sdk.Spec
	for name, fault := range faults {
		specs = append(specs, serve.Strategy(name, func(_ context.Context, c Config, _ sdk.Env) (strategy, error) {
			return strategy{c, name, fault}, nil
		}))
	}
	slices.SortFunc(specs, func(a, b sdk.Spec) int { return len(a.Name) - len(b.Name) })
	serve.Main(sdk.Info{Name: "strategist", Version: "1.0.0"}, specs...)
}
