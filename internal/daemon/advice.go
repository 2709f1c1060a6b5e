package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
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
