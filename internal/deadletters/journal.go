package deadletters

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/streamd/streamd/internal/filelock"
)

// The states of a dead letter in the journal.
const (
	stateSending = "sending" // it may have been stored
	stateSent    = "sent"
	stateRefused = "refused" // it was not stored
)

// entry is one line of the journal.
type entry struct {
	ID    string    `json:"id"`
	State string    `json:"state"`
	At    time.Time `json:"at"`
	To    string    `json:"to,omitempty"`     // topic
	NewID string    `json:"new_id,omitempty"` // offset message id of the copy
	Error string    `json:"error,omitempty"`
}

// Journal remembers on this machine what was redriven. It is written before and after each send, and locked while it is
// open. It is not safe for concurrent use.
type Journal struct {
	file  *os.File
	state map[string]entry // by id: the last one
}

// OpenJournal reads a journal, or makes one. The file of a crashed redrive may end in half a line, which is what had not
// begun.
func OpenJournal(path string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the journal: %w", err)
	}
	j := &Journal{file: f, state: map[string]entry{}}
	if err := j.open(path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

func (j *Journal) open(path string) error {
	if err := filelock.Take(j.file); err != nil {
		if errors.Is(err, filelock.ErrTaken) {
			return fmt.Errorf("journal %s is in use by another redrive; wait for it", path)
		}
		return fmt.Errorf("locking journal %s: %w", path, err)
	}
	return j.read(path)
}

func (j *Journal) read(path string) error {
	r := bufio.NewReader(j.file)
	whole := int64(0)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break // what has no end was not written to its end
		}
		if err != nil {
			return fmt.Errorf("reading journal %s: %w", path, err)
		}
		whole += int64(len(line))
		var e entry
		if err := json.Unmarshal(bytes.TrimSpace(line), &e); err != nil || e.ID == "" {
			return fmt.Errorf("line %d of journal %s cannot be read: it is no journal of redrive, or damaged; name another with --journal", n, path)
		}
		j.state[e.ID] = e
	}
	if err := j.file.Truncate(whole); err != nil {
		return fmt.Errorf("cutting the half line at the end of journal %s: %w", path, err)
	}
	if _, err := j.file.Seek(whole, io.SeekStart); err != nil {
		return fmt.Errorf("reading journal %s: %w", path, err)
	}
	return nil
}

// put writes an entry and waits until it is on disk.
func (j *Journal) put(e entry) error {
	text, err := json.Marshal(e)
	if err == nil {
		_, err = j.file.Write(append(text, '\n'))
	}
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	j.state[e.ID] = e
	return nil
}

// Close closes the file and gives its lock back.
func (j *Journal) Close() error {
	if err := j.file.Close(); err != nil {
		return fmt.Errorf("closing the journal: %w", err)
	}
	return nil
}
