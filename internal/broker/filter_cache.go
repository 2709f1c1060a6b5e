package broker

import (
	"sync"

	"github.com/streamd/streamd/internal/broker/sql92"
)

// maxExpressions bounds the parsed expressions that are kept. Past it all are dropped and parsed again when needed: a
// broker with so many is rare, and parsing is quick.
const maxExpressions = 1024

// expressionTable keeps parsed expressions by their text, so that not each pull parses its own again. Wrong ones are not
// kept: a hostile client must not push the others out for nothing.
type expressionTable struct {
	mu    sync.Mutex
	known map[string]*sql92.Expression
}

func newExpressionTable() *expressionTable {
	return &expressionTable{known: make(map[string]*sql92.Expression)}
}

func (t *expressionTable) get(text string) (*sql92.Expression, error) {
	t.mu.Lock()
	e := t.known[text]
	t.mu.Unlock()
	if e != nil {
		return e, nil
	}
	e, err := sql92.Parse(text)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= maxExpressions {
		clear(t.known)
	}
	t.known[text] = e
	return e, nil
}
