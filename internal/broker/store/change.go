package store

import "fmt"

// Change is what is stored at once. It is given to Submit once.
type Change struct {
	Appends []Append
	// Unschedule removes schedule entries, with the messages that waited when the entries are as Scheduled or FindScheduled
	// gave them. EndHalves removes open transactions by their log offsets; their messages stay.
	Unschedule []Scheduled
	EndHalves  []int64
}

// Append adds records to one queue, in order and without another message between them.
type Append struct {
	Topic   string
	Queue   int32
	Records []Record
	// Positions is filled in by Submit, one for each record.
	Positions []Position
}

// Value sets a value of a table, or removes it when it is nil.
type Value struct {
	Table, Key string
	Value      []byte
}

// maxQueues bounds the queue ids, so that a wild one costs no memory.
const maxQueues = 1 << 16

func (c *Change) check() (bytes int, err error) {
	for _, a := range c.Appends {
		if a.Queue < 0 || a.Queue >= maxQueues {
			return 0, fmt.Errorf("appending to %s/%d: the queue id is outside 0..%d", a.Topic, a.Queue, maxQueues-1)
		}
		for _, r := range a.Records {
			if !whole(r.Raw) {
				return 0, fmt.Errorf("appending to %s/%d: %d bytes are not one stored message", a.Topic, a.Queue, len(r.Raw))
			}
			bytes += len(r.Raw)
		}
	}
	return bytes, nil
}

// Submit puts a change in line to be stored and returns; the positions of what it appends are known then. done is called
// once, from a goroutine of the store, with nil when the change is stored, or with the reason why it is not known to be; it
// must not block. A change that is refused at once is the error, and done is not called. Changes are stored in the order of
// their Submits.
func (s *Store) Submit(c *Change, done func(error)) error {
	bytes, err := c.check()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.submitLocked(c, bytes, done)
}

// Apply is Submit that waits.
func (s *Store) Apply(c *Change) error {
	result := make(chan error, 1)
	if err := s.Submit(c, func(err error) { result <- err }); err != nil {
		return err
	}
	return <-result
}

// Set stores a value with the next change, or by itself after a while. Nobody is told; Settled says when it is stored. A
// value that is set while the store has failed is lost, see Options.Reopened; Settled says that too.
func (s *Store) Set(v Value) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.failed != nil {
		return
	}
	key := string(tableKey(v.Table, v.Key))
	if n := len(s.groups); n > 0 {
		s.groups[n-1].values[key] = v.Value
		return
	}
	s.lazy[key] = v.Value
	s.armLazyLocked()
}

// Mark is a moment in the life of a store, see Settled.
type Mark struct {
	failures int64
	failed   bool
}

// Mark returns the present moment.
func (s *Store) Mark() Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Mark{s.failures, s.failed != nil}
}

// Settled calls done when all that was submitted and set from since until now is stored, or with the reason why that is not
// known: also when the store has failed in between and is open again. It may do so before it returns.
func (s *Store) Settled(since Mark, done func(error)) {
	s.mu.Lock()
	err := s.refusalSinceLocked(since)
	idle := len(s.groups) == 0 && s.committing == nil && len(s.lazy) == 0
	if err == nil && !idle {
		g := s.groupLocked(0)
		g.done = append(g.done, done)
		s.wakeLocked()
	}
	s.mu.Unlock()
	if err != nil || idle {
		done(err)
	}
}

// refusalSinceLocked is refusalLocked for what goes on with something that was begun then.
func (s *Store) refusalSinceLocked(since Mark) error {
	err := s.refusalLocked()
	if err == nil && (since.failed || since.failures != s.failures) {
		err = fmt.Errorf("%w and was opened again meanwhile", ErrFailed)
	}
	return err
}

func (s *Store) submitLocked(c *Change, bytes int, done func(error)) error {
	if err := s.refusalLocked(); err != nil {
		return err
	}
	if len(c.Appends) > 0 {
		if err := s.space.refusal(s.clock.now()); err != nil {
			return err
		}
	}
	if s.pending > 0 && s.pending+int64(bytes) > s.options.MaxPending {
		return fmt.Errorf("%w: %d bytes", ErrBusy, s.pending)
	}
	g := s.groupLocked(bytes)
	if g.log == nil && bytes > 0 && (s.options.Flush == FlushAsync || max(g.bytes, s.lastGroup) >= s.options.MinApart) {
		s.segmentLocked(g)
	}
	for i := range c.Appends {
		s.appendLocked(g, &c.Appends[i])
	}
	for i := range c.Unschedule {
		g.end(&c.Unschedule[i], s.nextLog)
	}
	for _, offset := range c.EndHalves {
		g.remove(halfKey(offset))
	}
	g.done = append(g.done, done)
	s.wakeLocked()
	return nil
}

func (s *Store) appendLocked(g *group, a *Append) {
	if len(a.Records) == 0 {
		return
	}
	q := s.makeQueueLocked(g, a.Topic, a.Queue)
	first := run{place: place{q.number, q.next}, count: uint32(len(a.Records)), millis: s.clock.stamp()} //nolint:gosec // few
	base := s.nextLog
	a.Positions = make([]Position, 0, len(a.Records))
	for i := range a.Records {
		r := &a.Records[i]
		p := Position{QueueOffset: q.next, LogOffset: s.nextLog, StoreMillis: first.millis}
		stamp(r.Raw, a.Queue, p)
		g.message(q.number, a.Topic, p, r)
		if r.Due > 0 {
			s.scheduled++
		}
		q.next++
		s.nextLog += int64(len(r.Raw))
		first.bytes += uint32(len(r.Raw)) //nolint:gosec // a frame is far smaller
		a.Positions = append(a.Positions, p)
	}
	g.set(logKey(base), first.append(nil))
	g.touch(q)
}

// segmentLocked lets the messages of a group go into a segment, a new one if need be.
func (s *Store) segmentLocked(g *group) {
	if s.segment < 0 || s.nextLog-s.segment >= s.options.SegmentBytes {
		s.segment, s.left = s.nextLog, s.nextLog
		g.set(segmentKey(s.segment), nil)
		g.set([]byte{prefixVersion}, order.AppendUint32(nil, format))
	}
	g.at, g.segment = s.nextLog, s.segment
	g.log = []byte{}
	if n := len(s.spare); n > 0 {
		g.log, s.spare = s.spare[n-1], s.spare[:n-1]
	}
}
