package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"
)

// An error of the environment says what to write instead, in the words of where it was written.
func TestAdvice(t *testing.T) {
	t.Parallel()
	port := func(err error) string {
		return aboutPort(fmt.Errorf("listening: %w", &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", err)}), "health.listen", "192.0.2.1:80")
	}
	folder := func(err error) string {
		return aboutFolder(fmt.Errorf("making it: %w", &fs.PathError{Op: "mkdir", Path: "x", Err: err}), "state_dir")
	}
	file := func(err error) string { return aboutFile(&fs.PathError{Op: "open", Path: "x", Err: err}, "--acl") }
	for got, want := range map[string]string{
		port(syscall.EADDRINUSE):    "another process has that port: stop it, or write another health.listen",
		port(syscall.EADDRNOTAVAIL): "this machine does not have the address of 192.0.2.1:80: write one that it has as health.listen",
		port(syscall.EACCES):        "this user may not listen on that port: write another health.listen, 1024 or above",
		port(&net.DNSError{}):       "the name is not known here: write a numeric address as health.listen",
		folder(syscall.ENOTDIR):     "a file is in the place of a folder: write another state_dir, or move the file away",
		folder(syscall.EACCES):      "write a state_dir that this user may write to",
		folder(syscall.EROFS):       "write a state_dir that this user may write to",
		file(syscall.ENOENT):        "write the path of a file that is there as --acl",
		file(syscall.EACCES):        "let this user read the file, or write another --acl",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	odd := errors.New("odd")
	if got := advised(odd, aboutFolder(odd, "state_dir")); !errors.Is(got, odd) || got.Error() != "odd" {
		t.Errorf("an error that nothing is known of became %v", got)
	}
}
