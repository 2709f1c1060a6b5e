// Package exitcode holds the exit codes of streamd, which scripts rely on: docs/reference/exit-codes.md.
package exitcode

import "errors"

// The exit codes.
const (
	OK          = 0
	Runtime     = 1 // it ran and something went wrong
	Usage       = 2 // the command line or the config is wrong: repeating it cannot help
	Environment = 3 // broker, plugin, file or port is not reachable: the same command may work later
)

// Signaled is the exit code after a second signal: 128 and its number, as shells show it.
func Signaled(number int) int { return 128 + number }

// coded is an error that knows its exit code.
type coded struct {
	code int
	err  error
}

func (e *coded) Error() string { return e.err.Error() }
func (e *coded) Unwrap() error { return e.err }

// With gives err an exit code; nil stays nil.
func With(code int, err error) error {
	if err == nil {
		return nil
	}
	return &coded{code, err}
}

// Of is the exit code of an error: what With gave it, else Runtime.
func Of(err error) int {
	var c *coded
	switch {
	case err == nil:
		return OK
	case errors.As(err, &c):
		return c.code
	}
	return Runtime
}
