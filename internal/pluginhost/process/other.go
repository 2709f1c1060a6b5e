//go:build !linux

package process

import (
	"fmt"
	"os"
	goruntime "runtime"
	"syscall"
)

// ErrUnsupported says that this system runs no plugins: they rest on pidfds, sealed memory and parent-death signals.
// Commands that need no plugin process (validate, produce, group status, plugin new) work everywhere.
var ErrUnsupported = fmt.Errorf("plugin processes need Linux and this is %s/%s; run streamd on a Linux machine or in a container",
	goruntime.GOOS, goruntime.GOARCH)

func supported() error { return ErrUnsupported }

func checkBase(string) error { return ErrUnsupported }

func removeIfDead(string) error { return ErrUnsupported }

func flock(*os.File) error { return ErrUnsupported }

func (e *Executable) checkMount() error { return ErrUnsupported }

// Look sees nothing on this system.
func Look(string) Stamp { return Stamp{} }

// Dup is not there on this system.
func (e *Executable) Dup() (*Executable, error) { return nil, ErrUnsupported }

func fork(*Spec, *os.File, *os.File) (*os.Process, int, error) { return nil, -1, ErrUnsupported }

func pollable(int) *os.File { return nil }

func kill(int, syscall.Signal) error { return ErrUnsupported }

func (p *Process) awaitEnd() {}

func (p *Process) reapGroup() {}
