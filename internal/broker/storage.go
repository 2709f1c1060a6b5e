package broker

import (
	"errors"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker/store"
)

// storage is the broker's store as its handlers use it. A read that fails ends the request, whose answer then says so: an
// error must never look like a queue without messages. A store that is closed has nothing.
type storage struct {
	options store.Options
	opened  atomic.Pointer[store.Store] // nil before the first Start of a broker with a data folder, and after Close
}

func newStorage(c Config) *storage {
	s := &storage{options: store.Options{
		Dir: c.DataDir, FS: c.Files, Flush: c.Flush, FlushInterval: c.FlushInterval, CacheBytes: c.CacheBytes, MinFree: c.MinFree,
		RetainAge: c.RetainAge, RetainBytes: c.RetainBytes, Logger: c.Logger,
	}}
	if c.DataDir == "" {
		s.options.Dir, s.options.Flush = "memory", store.FlushAsync
		or[vfs.FS](&s.options.FS, vfs.NewMem())
	}
	return s
}

// inMemory tells that nothing outlives the broker.
func (s *storage) inMemory() bool { return s.options.Dir == "memory" }

// open opens the store; false: it is open.
func (s *storage) open() (bool, error) {
	if s.opened.Load() != nil {
		return false, nil
	}
	opened, err := store.Open(s.options)
	if err != nil {
		return false, err
	}
	s.opened.Store(opened)
	return true, nil
}

func (s *storage) close() error {
	opened := s.opened.Swap(nil)
	if opened == nil {
		return nil
	}
	return opened.Close()
}

// err is why nothing can be stored now.
func (s *storage) err() error {
	if o := s.opened.Load(); o != nil {
		return o.Err()
	}
	return store.ErrClosed
}

// readError is what a read that fails throws; dispatch catches it.
type readError struct{ error }

// reading gives the store to what reads from it.
func reading[T any](s *storage, read func(*store.Store) (T, error)) (v T) {
	o := s.opened.Load()
	if o == nil {
		return v
	}
	v, err := read(o)
	if err != nil && !errors.Is(err, store.ErrClosed) {
		panic(readError{err})
	}
	return v
}

type found[T any] struct {
	value T
	ok    bool
}

// Bounds is that of the store.
func (s *storage) Bounds(topic string, queue int32) (first, next int64, ok bool) {
	if o := s.opened.Load(); o != nil {
		return o.Bounds(topic, queue)
	}
	return 0, 0, false
}

// Queues is that of the store.
func (s *storage) Queues(topic string) int {
	if o := s.opened.Load(); o != nil {
		return o.Queues(topic)
	}
	return 0
}

// Read is that of the store.
func (s *storage) Read(topic string, queue int32, offset int64, limits store.Limits, match store.Match) store.Result {
	return reading(s, func(o *store.Store) (store.Result, error) { return o.Read(topic, queue, offset, limits, match) })
}

// Messages is that of the store.
func (s *storage) Messages(topic string, queue int32, from int64, limit int) [][]byte {
	return reading(s, func(o *store.Store) ([][]byte, error) { return o.Messages(topic, queue, from, limit) })
}

// StoreMillis is that of the store.
func (s *storage) StoreMillis(topic string, queue int32, offset int64) (int64, bool) {
	f := reading(s, func(o *store.Store) (f found[int64], err error) {
		f.value, f.ok, err = o.StoreMillis(topic, queue, offset)
		return f, err
	})
	return f.value, f.ok
}

// Search is that of the store.
func (s *storage) Search(topic string, queue int32, millis int64, upper bool) int64 {
	return reading(s, func(o *store.Store) (int64, error) { return o.Search(topic, queue, millis, upper) })
}

// Lookup is that of the store.
func (s *storage) Lookup(logOffset int64) ([]byte, bool) {
	f := reading(s, func(o *store.Store) (f found[[]byte], err error) {
		f.value, f.ok, err = o.Lookup(logOffset)
		return f, err
	})
	return f.value, f.ok
}

// Query is that of the store.
func (s *storage) Query(topic, key string, begin, end int64, limit int, has func(raw []byte) bool) [][]byte {
	return reading(s, func(o *store.Store) ([][]byte, error) { return o.Query(topic, key, begin, end, limit, has) })
}

// Log is that of the store.
func (s *storage) Log() (first, next int64) {
	b := reading(s, func(o *store.Store) (b [2]int64, err error) {
		b[0], b[1], err = o.Log()
		return b, err
	})
	return b[0], b[1]
}

// scheduled is Scheduled of the store.
func (s *storage) scheduled(from, until int64, limit, bytes int) (due []store.Scheduled, next int64, err error) {
	if o := s.opened.Load(); o != nil {
		return o.Scheduled(from, until, limit, bytes)
	}
	return nil, 0, store.ErrClosed
}

// findScheduled is FindScheduled of the store.
func (s *storage) findScheduled(from, until int64, is func(raw []byte) bool) (e store.Scheduled, found bool, err error) {
	if o := s.opened.Load(); o != nil {
		return o.FindScheduled(from, until, is)
	}
	return store.Scheduled{}, false, store.ErrClosed
}

// halves is Halves of the store.
func (s *storage) halves() ([]int64, error) {
	if o := s.opened.Load(); o != nil {
		return o.Halves()
	}
	return nil, store.ErrClosed
}

// waiting is how many messages wait for their time.
func (s *storage) waiting() int {
	if o := s.opened.Load(); o != nil {
		return o.CountScheduled()
	}
	return 0
}

// table is Table of the store.
func (s *storage) table(name string) (map[string][]byte, error) {
	if o := s.opened.Load(); o != nil {
		return o.Table(name)
	}
	return nil, store.ErrClosed
}

// set stores a value of a table; nil removes it.
func (s *storage) set(table, key string, value []byte) {
	if o := s.opened.Load(); o != nil {
		o.Set(store.Value{Table: table, Key: key, Value: value})
	}
}

// submit is Submit of the store.
func (s *storage) submit(c *store.Change, done func(error)) error {
	if o := s.opened.Load(); o != nil {
		return o.Submit(c, done)
	}
	return store.ErrClosed
}

// mark is a moment of a store, from which settled looks back.
type mark struct {
	of *store.Store
	at store.Mark
}

func (s *storage) mark() mark {
	if o := s.opened.Load(); o != nil {
		return mark{o, o.Mark()}
	}
	return mark{}
}

// settled is Settled of the store: of what was submitted and set since m.
func (s *storage) settled(m mark, done func(error)) {
	if o := s.opened.Load(); o != nil && o == m.of {
		o.Settled(m.at, done)
		return
	}
	done(store.ErrClosed)
}

// settle waits until all that was submitted and set since m is stored.
func (s *storage) settle(m mark) error {
	result := make(chan error, 1)
	s.settled(m, func(err error) { result <- err })
	return <-result
}

// edit runs one of the store's edits of queues, whose end settle waits for.
func (s *storage) edit(do func(o *store.Store, done func(error))) error {
	o := s.opened.Load()
	if o == nil {
		return store.ErrClosed
	}
	result := make(chan error, 1)
	do(o, func(err error) { result <- err })
	return <-result
}

// now is the store's clock.
func (s *storage) now() int64 {
	if o := s.opened.Load(); o != nil {
		return o.Now()
	}
	return 0
}
