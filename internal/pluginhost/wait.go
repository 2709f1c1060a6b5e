package pluginhost

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Waited is the cause of a context that bounds how long plugins are waited for, as in context.WithTimeoutCause(ctx, limit,
// Waited(limit)): errors tell the time then. errors.Is takes it for context.DeadlineExceeded.
func Waited(limit time.Duration) error { return &waitedError{limit} }

type waitedError struct{ limit time.Duration }

func (e *waitedError) Error() string        { return "waited for " + e.limit.String() }
func (e *waitedError) Is(target error) bool { return target == context.DeadlineExceeded }

// unmetError is a wait that its context ended. Contexts' own words tell people nothing, so the text has none.
type unmetError struct {
	text  string
	why   error // may be nil
	cause error
}

func (e *unmetError) Error() string { return e.text }

func (e *unmetError) Unwrap() []error {
	if e.why == nil {
		return []error{e.cause}
	}
	return []error{e.why, e.cause}
}

// unmet is a wait that was given up: what is not so, such as "not ready"; how long it was waited for, or the cause when it says
// more than that a context has ended; and why it is not so, if that is known.
func unmet(what string, why, cause error) error {
	text := what
	switch w, timed := errors.AsType[*waitedError](cause); {
	case timed:
		text += " after " + w.limit.String()
	case cause == context.DeadlineExceeded: //nolint:errorlint // only when it says no more
		text += " in time"
	case cause == context.Canceled: //nolint:errorlint // as above
		text += ", and it was given up"
	default:
		text += " (" + cause.Error() + ")"
	}
	if why != nil {
		text += ": " + why.Error()
	}
	return &unmetError{text, why, cause}
}

// skew is by how much a plugin may see the end of a call's time before its host.
const skew = time.Second

// unanswered says why a call got no answer: that the time is up, or the process's fate.
func (g *generation) unanswered(ctx context.Context, err error) error {
	code := status.Code(err)
	if at, limited := ctx.Deadline(); limited && code == codes.DeadlineExceeded && time.Until(at) < skew {
		<-ctx.Done() // the plugin's clock was the faster
	}
	switch {
	case ctx.Err() != nil && (code == codes.DeadlineExceeded || code == codes.Canceled):
		return unmet("no answer", nil, context.Cause(ctx))
	case code == codes.DeadlineExceeded: // of a limit of the plugin's own
		return unmet("no answer", nil, context.DeadlineExceeded)
	}
	return g.explain(err)
}
