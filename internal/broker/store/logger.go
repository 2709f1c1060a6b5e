package store

import (
	"fmt"
	"log/slog"
	"runtime"
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
	l.log.Debug("pebble", "said", fmt.Sprintf(format, args...))
}

// Errorf is part of pebble.Logger.
func (l logger) Errorf(format string, args ...any) {
	l.log.Warn("pebble", "said", fmt.Sprintf(format, args...))
}

// Fatalf is part of pebble.Logger and does not return.
func (l logger) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if strings.Contains(format, "fatal commit error") {
		panic(fatal{err}) // Caught by commit, which holds nothing of Pebble's at that point.
	}
	l.store.failForGood(err)
	runtime.Goexit()
}
