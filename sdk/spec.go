package sdk

import (
	"context"
	"fmt"
	"log/slog"
)

// Info names a plugin. It is shown in status, logs and failure records.
type Info struct {
	Name    string
	Version string
}

// Env is what a component is built with beside its config.
type Env struct {
	// Instance is the name of the entry under handlers:, or of the stream's allocation.
	Instance string
	// Logger writes to the host's log: level and attributes arrive there, with the trace of the context that is passed.
	Logger *slog.Logger
}

// Kind tells what a component is for.
type Kind uint8

// The kinds of components.
const (
	KindHandler  Kind = iota + 1 // gets messages
	KindStrategy                 // divides queues
)

// Mode tells how a handler takes its messages.
type Mode string

// The modes of handlers.
const (
	ModeSingle Mode = "single" // Handler
	ModeBatch  Mode = "batch"  // BatchHandler
	ModeAsync  Mode = "async"  // AsyncHandler
)

// Needs declares what a strategy reads and promises (design.md 9).
type Needs struct {
	Partial    bool     // may leave queues uncovered by design
	Attributes []string // attributes of members it reads
	Previous   bool     // reads the previous owners
	PerMember  bool     // computes one member's share at a time
}

// Spec describes one component that a plugin offers. Component, BatchComponent, AsyncComponent and serve.Strategy make
// one; authors pass it on to serve.Main or sdktest.Run and never fill it themselves.
type Spec struct {
	Name    string
	Kind    Kind
	Mode    Mode   // handlers only
	Summary string // one line for `streamd plugin describe`
	Schema  []byte // JSON Schema of the config; nil = takes no config
	Needs   Needs  // strategies only
	// Unordered is why a handler cannot keep the order of messages that it gets in order; empty = it keeps it.
	Unordered string
	// New builds one configured instance: a Handler, BatchHandler or AsyncHandler as Mode says, or for a strategy what
	// serve.Solver says. With an error among the diagnostics the instance is nil.
	New func(ctx context.Context, config []byte, env Env) (instance any, diagnostics []Diagnostic)
}

// WithSummary returns the spec with a line that tells people what the component does.
func (s Spec) WithSummary(line string) Spec {
	s.Summary = line
	return s
}

// WithoutOrder returns the spec of a handler that cannot keep order, and says why in a few words: "acknowledges before its
// workers are done". Streams with order: queue or key refuse such a handler when their config is read.
//
// A handler keeps order when nothing of a message takes effect before what it did with the earlier ones of its queue or key has,
// or has been taken back. The host gives a message only when the earlier ones are settled, so a Handler or an AsyncHandler need
// this only when they acknowledge what is not done. A BatchHandler may get several messages of a key at once: it needs
// this when a later one of them may take effect though an earlier one failed, as in a bulk request whose items fail one by one.
//
// It panics when why is empty.
func (s Spec) WithoutOrder(why string) Spec {
	if why == "" {
		panic(fmt.Sprintf("component %q: WithoutOrder needs the reason", s.Name))
	}
	s.Unordered = why
	return s
}

// Severity tells whether a diagnostic stops the start.
type Severity uint8

// The severities.
const (
	SeverityError Severity = iota + 1
	SeverityWarning
)

// Diagnostic is one thing that is wrong with a config.
type Diagnostic struct {
	Severity Severity
	Pointer  string // JSON pointer (RFC 6901) into the config; "" = the whole
	Text     string // what is wrong
	Hint     string // what to write instead; may be empty
}
