package pluginhost

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// mostRest is how much a pipe holds at the most, fs.pipe-max-size.
const mostRest = 1 << 20

// pipe reads the output of a process. After its deadline it still reads what is in the pipe, and does not wait for more: what
// was written before is not lost because nobody had the time to read it. A writer that goes on is cut off.
type pipe struct {
	file *os.File
	rest int // read after the deadline
}

// Read implements io.Reader.
func (p *pipe) Read(b []byte) (int, error) {
	n, err := p.file.Read(b)
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || p.rest >= mostRest {
		return n, err //nolint:wrapcheck // as an os.File
	}
	n, now := p.now(b)
	p.rest += n
	if errors.Is(now, syscall.EAGAIN) {
		return 0, err //nolint:wrapcheck // as above: the pipe is empty
	}
	return n, now
}

// now reads without waiting, whatever the deadline is.
func (p *pipe) now(b []byte) (n int, err error) {
	raw, err := p.file.SyscallConn()
	if err != nil {
		return 0, err //nolint:wrapcheck // as above
	}
	closed := raw.Control(func(fd uintptr) {
		for {
			if n, err = readNow(fd, b); !errors.Is(err, syscall.EINTR) {
				return
			}
		}
	})
	switch {
	case closed != nil:
		return 0, closed //nolint:wrapcheck // as above
	case err != nil:
		return 0, err //nolint:wrapcheck // as above
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}
