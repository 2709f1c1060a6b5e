package sdk

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Classes that the SDK gives to errors without one.
const (
	ClassError    = "error"
	ClassTimeout  = "timeout"  // the error wraps context.DeadlineExceeded
	ClassCanceled = "canceled" // the error wraps context.Canceled
	ClassPanic    = "panic"
)

type verdictError struct {
	err    error
	class  string
	delay  time.Duration
	reject bool
}

func (e *verdictError) Error() string {
	if e.err == nil {
		return e.class
	}
	return e.err.Error()
}

func (e *verdictError) Unwrap() error { return e.err }

// RetryAfter has the message delivered again no sooner than after d. Over a broker this is approximate: it takes the
// smallest delay level that is at least d.
func RetryAfter(err error, d time.Duration) error {
	return &verdictError{err: err, class: classOf(err), delay: d}
}

// Reject has the message dead-lettered now. class is a short stable word for metrics and failure records, such as
// "bad_order".
func Reject(class string, err error) error {
	return &verdictError{err: err, class: class, reject: true}
}

// WithClass has the message delivered again, with a class of the author's own.
func WithClass(class string, err error) error {
	return &verdictError{err: err, class: class}
}

func classOf(err error) string {
	var v *verdictError
	switch {
	case errors.As(err, &v):
		return v.class
	case errors.Is(err, context.DeadlineExceeded):
		return ClassTimeout
	case errors.Is(err, context.Canceled):
		return ClassCanceled
	default:
		return ClassError
	}
}

// VerdictKind tells how a message ended.
type VerdictKind uint8

// The kinds of verdicts.
const (
	Acked VerdictKind = iota + 1
	Retried
	Rejected
)

// Verdict is what an error of a handler means.
type Verdict struct {
	Kind  VerdictKind
	Delay time.Duration // Retried: at least; 0 = by the stream's policy
	Class string
	Text  string
}

// maxText bounds the text of an error on its way to the host, in bytes.
const maxText = 32 << 10

// VerdictOf reads the verdict from what a handler returned. Class and text are valid UTF-8 of bounded length.
func VerdictOf(err error) Verdict {
	if err == nil {
		return Verdict{Kind: Acked}
	}
	v := Verdict{Kind: Retried, Class: clean(classOf(err), 128), Text: clean(err.Error(), maxText)}
	if marked, ok := errors.AsType[*verdictError](err); ok {
		v.Delay = marked.delay
		if marked.reject {
			v.Kind, v.Delay = Rejected, 0
		}
	}
	return v
}

func clean(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
