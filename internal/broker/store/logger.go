package store

import (
	"context"
	"fmt"
	"log/slog"
	goruntime "runtime"
	"strings"
)

// logger takes Pebble's words. Where Pebble asks for the end of the process the store fails instead: a broker that lost its
// disk still answers that it did.
type logger struct {
	log   *slog.Logger
	store *Store
}

// Infof is part of pebble.Logger.
func (l logger) Infof(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("pebble", "said", fmt.Sprintf(format, args...))
	}
}

// Errorf is part of pebble.Logger.
func (l logger) Errorf(format string, args ...any) {
	l.log.Warn("pebble", "said", fmt.Sprintf(format, args...))
}

// Fatalf is part of pebble.Logger and does not return.
func (l logger) Fatalf(format string, args ...any) {
	err := said(fmt.Sprintf(format, args...), args)
	if strings.Contains(format, "fatal commit error") || !l.store.disk.patient.Load() {
		panic(fatal{err}) // Caught by commit, which holds nothing of Pebble's at that point, and by openPebble.
	}
	l.store.failForGood(err)
	goruntime.Goexit()
}

// said is an error with Pebble's text, and the errors it tells of.
func said(text string, args []any) error {
	e := &pebbleError{text: text}
	for _, a := range args {
		if cause, ok := a.(error); ok {
			e.causes = append(e.causes, cause)
		}
	}
	return e
}

type pebbleError struct {
	text   string
	causes []error
}

// Error is Pebble's text.
func (e *pebbleError) Error() string { return e.text }

// Unwrap returns the errors that the text tells of.
func (e *pebbleError) Unwrap() []error { return e.causes }
