//go:build unix

package serve

import (
	"os"
	"syscall"

	"github.com/streamd/streamd/internal/border"
)

// handshakeOut is where the handshake line goes: what file descriptor 1 was when the process began. The descriptor itself
// has become a second stderr, for cgo, child processes and everything that prints. This has to happen while packages are
// initialized, before the author's code can print, and only in a process that a host has started: hence a variable that is
// set once and never changes.
//
//nolint:gochecknoglobals // see above: main is too late, the author's init functions may print
var handshakeOut = claimStdout()

func claimStdout() *os.File {
	if os.Getenv(border.CookieKey) != border.CookieValue {
		return os.Stdout
	}
	saved, err := syscall.Dup(1)
	if err != nil {
		return os.Stdout
	}
	syscall.CloseOnExec(saved)
	if err := dup2(2, 1); err != nil {
		return os.Stdout
	}
	return os.NewFile(uintptr(saved), "handshake")
}
