package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/exitcode"
)

// advised adds to an error what to do about it, if that is known.
func advised(err error, advice string) error {
	if advice == "" {
		return err
	}
	return fmt.Errorf("%w; %s", err, advice)
}

// aboutPort is what to do about an address that cannot be listened on; key is where it was written.
func aboutPort(err error, key, address string) string {
	var name *net.DNSError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "another process has that port: stop it, or write another " + key
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine does not have the address of " + address + ": write one that it has as " + key
	case errors.Is(err, syscall.EACCES):
		return "this user may not listen on that port: write another " + key + ", 1024 or above"
	case errors.As(err, &name):
		return "the name is not known here: write a numeric address as " + key
	}
	return ""
}

// aboutFolder is what to do about a folder that cannot be made or written to; key is where its path was written.
func aboutFolder(err error, key string) string {
	switch {
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		return "a file is in the place of a folder: write another " + key + ", or move the file away"
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return "write a " + key + " that this user may write to"
	}
	return ""
}

// fileError is a file that cannot be used; key is where its path is written, within its entry: tls.ca.
type fileError struct {
	key string
	err error
}

func (e *fileError) Error() string { return e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }

// pairError is a certificate and its key, in the file at path, of a section that cannot be used.
func pairError(section, path string, err error) error {
	if file, ok := errors.AsType[*fs.PathError](err); ok && file.Path == path {
		return &fileError{section + "key", err}
	}
	return &fileError{section + "cert", err}
}

// of says whose error it is; nobody's when who is empty.
func of(who string, err error) error {
	if who == "" {
		return err
	}
	return fmt.Errorf("%s: %w", who, err)
}

// unusable says of a file that an entry names whose it is, where its path is written, and what to do, with the key in the words
// of name. The error has its exit code.
func unusable(err error, who string, written config.Entry, name func(key string) string) error {
	code := fileFault(err)
	file, ok := errors.AsType[*fileError](err)
	err = of(who, err)
	if !ok {
		return exitcode.With(code, err)
	}
	return exitcode.With(code, written.Place(advised(err, aboutFile(err, name(file.key))), strings.Split(file.key, ".")...))
}

// aboutFile is what to do about a file that cannot be read; key is where its path was written.
func aboutFile(err error, key string) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "write the path of a file that is there as " + key
	case errors.Is(err, fs.ErrPermission):
		return "let this user read the file, or write another " + key
	}
	return ""
}
