package plog

import (
	"bufio"
	"errors"
	"io"
)

// MaxLine is how much of one line is kept, in bytes.
const MaxLine = 64 << 10

// Lines calls f for each line of r until r ends or fails, and returns nil at the end of file. The line carries no line
// break, is valid only during the call, and holds at most MaxLine bytes; cut tells how many bytes of it were left out.
func Lines(r io.Reader, f func(line []byte, cut int)) error {
	reader := bufio.NewReaderSize(r, 16<<10)
	var line []byte
	cut, started := 0, false
	for {
		part, err := reader.ReadSlice('\n')
		started = started || len(part) > 0
		complete := err == nil
		if complete {
			part = part[:len(part)-1]
		}
		room := min(MaxLine-len(line), len(part))
		line = append(line, part[:room]...)
		cut += len(part) - room
		if complete || (!errors.Is(err, bufio.ErrBufferFull) && started) {
			f(trimCR(line), cut)
			line, cut, started = line[:0], 0, false
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

func trimCR(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		return line[:n-1]
	}
	return line
}
