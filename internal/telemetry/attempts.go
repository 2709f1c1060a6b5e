package telemetry

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/trace"
)

// Limits of the table of previous attempts: it is a help for readers of traces, so it may forget.
const (
	maxAttempts     = 16384
	maxAttemptsFile = 4 << 20 // bytes; then the file is written anew
)

// attempts remembers the span of the last sampled attempt of each message that will come back, so that the next attempt
// can link to it. It survives a restart in a file of the state folder. Only failures of sampled messages pass here.
type attempts struct {
	mu    sync.Mutex
	spans map[string]trace.SpanContext
	order []string // oldest first; may hold identities that are gone
	path  string
	file  *os.File
	size  int

	maxSpans, maxSize int
}

func openAttempts(stateDir string) (*attempts, error) {
	a := &attempts{spans: map[string]trace.SpanContext{}, maxSpans: maxAttempts, maxSize: maxAttemptsFile}
	if stateDir == "" {
		return a, nil
	}
	a.path = filepath.Join(stateDir, "attempts")
	content, err := os.ReadFile(a.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the previous attempts: %w", err)
	}
	for s := bufio.NewScanner(bytes.NewReader(content)); s.Scan(); {
		if identity, sc, ok := parseAttempt(s.Text()); ok { // a torn last line is no loss
			a.remember(identity, sc)
		}
	}
	return a, a.rewrite()
}

func parseAttempt(line string) (string, trace.SpanContext, bool) {
	identity, parent, ok := strings.Cut(line, " ")
	tid, sid, flags, valid := parseTraceparent([]byte(parent))
	return identity, trace.NewSpanContext(trace.SpanContextConfig{TraceID: tid, SpanID: sid, TraceFlags: flags, Remote: true}), ok && valid
}

func formatAttempt(identity string, sc trace.SpanContext) string {
	return fmt.Sprintf("%s 00-%s-%s-%02x\n", identity, sc.TraceID(), sc.SpanID(), byte(sc.TraceFlags()))
}

// last returns the span of the previous attempt, if it is known.
func (a *attempts) last(identity string) (trace.SpanContext, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	sc, ok := a.spans[identity]
	return sc, ok
}

// put remembers the attempt that just failed.
func (a *attempts) put(identity string, sc trace.SpanContext) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remember(identity, sc)
	if a.file == nil {
		return nil
	}
	n, err := a.file.WriteString(formatAttempt(identity, sc))
	a.size += n
	if err == nil && a.size > a.maxSize {
		err = a.rewrite()
	}
	if err != nil {
		return fmt.Errorf("keeping the previous attempt of %s: %w", identity, err)
	}
	return nil
}

// forget drops a message that will not come back.
func (a *attempts) forget(identity string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.spans, identity)
}

func (a *attempts) remember(identity string, sc trace.SpanContext) {
	if _, known := a.spans[identity]; !known {
		a.order = append(a.order, identity)
	}
	a.spans[identity] = sc
	for len(a.order) > a.maxSpans {
		delete(a.spans, a.order[0])
		a.order = a.order[1:]
	}
}

// rewrite replaces the file by the table's content: a new file, then a rename.
func (a *attempts) rewrite() error {
	next := a.path + ".new"
	file, err := os.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("writing the previous attempts: %w", err)
	}
	a.size = 0
	w := bufio.NewWriter(file)
	for _, identity := range a.order {
		if sc, ok := a.spans[identity]; ok {
			n, _ := w.WriteString(formatAttempt(identity, sc)) // Flush reports the error
			a.size += n
		}
	}
	if err := errors.Join(w.Flush(), os.Rename(next, a.path)); err != nil {
		return errors.Join(fmt.Errorf("writing the previous attempts: %w", err), file.Close())
	}
	old := a.file
	a.file = file
	if old != nil {
		return old.Close()
	}
	return nil
}

func (a *attempts) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		return nil
	}
	err := a.file.Close()
	a.file = nil
	return err
}
