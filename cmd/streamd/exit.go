package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/exitcode"
)

// usageError is a command line that cannot be understood.
type usageError struct {
	command string
	err     error
}

func (e usageError) Error() string {
	return fmt.Sprintf("%v; try %s --help", e.err, e.command)
}

func (e usageError) Unwrap() error { return e.err }

// report tells an error to a person and returns the exit code.
func report(talk io.Writer, err error) int {
	if err == nil {
		return exitcode.OK
	}
	if _, silent := errors.AsType[*shown](err); !silent {
		fmt.Fprintln(talk, "streamd: "+strings.ReplaceAll(err.Error(), "\n", "\nstreamd: "))
	}
	return code(err)
}

func code(err error) int {
	var usage usageError
	var invalid *config.InvalidError
	var unreadable *config.UnreadableError
	switch {
	case errors.As(err, &invalid) && invalid.Away():
		return exitcode.Environment
	case errors.As(err, &usage), errors.As(err, &invalid), strings.HasPrefix(err.Error(), "unknown command"):
		return exitcode.Usage
	case errors.As(err, &unreadable):
		return exitcode.Environment
	}
	return exitcode.Of(err)
}

// shown is an error whose text the command has already printed in its own form.
type shown struct{ err error }

func (e *shown) Error() string { return e.err.Error() }
func (e *shown) Unwrap() error { return e.err }
