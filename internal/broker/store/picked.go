package store

// picked is the messages of one read. Those in segments are read when all are known, since many lie behind each other there.
type picked struct {
	arena    arena
	limits   Limits
	size     int
	messages [][]byte
	pending  []pending
	scratch  []byte // holds one message while it is looked at
}

// pending is a message that is to be read, and where among the messages it belongs.
type pending struct {
	pointer
	at int
}

// add takes the message whose value is v; false: there is no room for it.
func (p *picked) add(v []byte) bool {
	size := len(v)
	at, out := readPointer(v)
	if out {
		size = int(at.size)
	}
	if n := len(p.messages); n > 0 && (n >= p.limits.Messages || p.size+size > p.limits.Bytes) {
		return false
	}
	if p.messages == nil {
		p.messages = make([][]byte, 0, min(p.limits.Messages, usualPull))
	}
	var raw []byte
	if out {
		p.pending = append(p.pending, pending{at, len(p.messages)})
	} else {
		raw = p.arena.take(size, min((p.limits.Messages-len(p.messages))*(size+size/8), p.limits.Bytes-p.size))
		copy(raw, v)
	}
	p.messages = append(p.messages, raw)
	p.size += size
	return true
}

// whole returns the message whose value is v; it is valid until the next call.
func (p *picked) whole(m *segments, v []byte) ([]byte, error) {
	raw, err := m.message(v, p.scratch)
	if cap(raw) > cap(p.scratch) && len(v) == pointerSize {
		p.scratch = raw
	}
	return raw, err
}

// read fills in what is pending, and gives all to r.
func (p *picked) read(m *segments, r *Result) error {
	left := 0
	for _, one := range p.pending {
		left += int(one.size)
	}
	for i := 0; i < len(p.pending); {
		j, size := i+1, int(p.pending[i].size)
		for j < len(p.pending) && p.pending[j].log == p.pending[j-1].end() {
			size += int(p.pending[j].size)
			j++
		}
		if err := p.readRun(m, p.pending[i:j], p.arena.take(size, left)); err != nil {
			return err
		}
		i, left = j, left-size
	}
	r.Messages, r.TotalSize = p.messages, p.size
	return nil
}

// readRun reads what lies behind each other.
func (p *picked) readRun(m *segments, run []pending, into []byte) error {
	if err := m.read(run[0].log, into); err != nil {
		return err
	}
	for _, one := range run {
		raw := into[:one.size:one.size]
		into = into[one.size:]
		if err := m.check(one.pointer, raw); err != nil {
			return err
		}
		p.messages[one.at] = raw
	}
	return nil
}

// arena is where the messages of one read are copied to, so that they take few allocations.
type arena struct{ free []byte }

// take returns room for n bytes; more may be asked for, up to so many in all.
func (a *arena) take(n, all int) []byte {
	if len(a.free) < n {
		a.free = make([]byte, max(n, min(all, 1<<20)))
	}
	c := a.free[:n:n]
	a.free = a.free[n:]
	return c
}
