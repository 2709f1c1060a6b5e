package faultproxy

import "sync"

// gate holds traffic while somebody has shut it.
type gate struct {
	mu    sync.Mutex
	shuts int
	open  chan struct{} // closed when the last one opens
}

// shut closes the gate; the returned function opens it again, once.
func (g *gate) shut() (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shuts == 0 {
		g.open = make(chan struct{})
	}
	g.shuts++
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.shuts--; g.shuts == 0 {
			close(g.open)
		}
	})
}

// wait returns when the gate is open; false: done was closed first.
func (g *gate) wait(done <-chan struct{}) bool {
	for {
		g.mu.Lock()
		shut, open := g.shuts > 0, g.open
		g.mu.Unlock()
		if !shut {
			return true
		}
		select {
		case <-open:
		case <-done:
			return false
		}
	}
}
