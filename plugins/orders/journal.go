package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// outcome is how an attempt ended.
type outcome string

const (
	handled  outcome = "handled"
	failed   outcome = "failed"
	rejected outcome = "rejected"
)

// entry is one line of the journal.
type entry struct {
	Order   string  `json:"order"`
	Attempt int     `json:"attempt"`
	Outcome outcome `json:"outcome"`
	Error   string  `json:"error,omitempty"`
}

// journal is what the handler does to the world: a file with a line for each attempt. nil keeps none.
type journal struct{ file *os.File }

func openJournal(path string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the journal: %w", err)
	}
	return &journal{f}, nil
}

// write adds a line in one call, which the system does not mix with that of another process.
func (j *journal) write(order string, attempt int, outcome outcome, why error) error {
	if j == nil {
		return nil
	}
	e := entry{Order: order, Attempt: attempt, Outcome: outcome}
	if why != nil {
		e.Error = why.Error()
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	return nil
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	if err := j.file.Close(); err != nil {
		return fmt.Errorf("closing the journal: %w", err)
	}
	return nil
}
