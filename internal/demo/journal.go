package demo

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// attempt is one line of the sample plugin's journal: what its handler did.
type attempt struct {
	Order   string `json:"order"`
	Attempt int    `json:"attempt"`
	Outcome string `json:"outcome"` // handled, failed or rejected
	Error   string `json:"error"`
}

// journal reads a member's journal as it grows.
type journal struct {
	path string
	file *os.File
	rest []byte // of a line that is not whole yet
}

// read calls f for each attempt written since the last call.
func (j *journal) read(f func(*attempt)) error {
	if j.file == nil {
		file, err := os.Open(j.path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the plugin has not started yet
		}
		if err != nil {
			return fmt.Errorf("reading what the handlers did: %w", err)
		}
		j.file = file
	}
	in := bufio.NewReader(j.file)
	for {
		line, err := in.ReadBytes('\n')
		j.rest = append(j.rest, line...)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading what the handlers did: %w", err)
		}
		var a attempt
		if err := json.Unmarshal(bytes.TrimSpace(j.rest), &a); err != nil {
			return fmt.Errorf("reading %s: %w", j.path, err)
		}
		j.rest = j.rest[:0]
		f(&a)
	}
}

func (j *journal) close() {
	if j.file != nil {
		_ = j.file.Close() // only read
	}
}
