package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// format is the version of what keys.go describes. A store without segments has firstFormat.
const (
	format      = 2
	firstFormat = 1
)

// lockFolder makes the folder and takes it for this process.
func (s *Store) lockFolder() error {
	if err := checkForeign(s.options.FS, s.options.Dir); err != nil {
		return err
	}
	if err := s.options.FS.MkdirAll(s.options.Dir, 0o755); err != nil {
		return plainly(err)
	}
	lock, err := pebble.LockDirectory(s.options.Dir, s.options.FS)
	if err != nil {
		return plainly(err)
	}
	s.lock = lock
	return nil
}

// plainly says what an error of the folder means.
func plainly(err error) error {
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EACCES) && isLock(err), strings.Contains(err.Error(), "lock held by current process"):
		return fmt.Errorf("%w: stop that process or choose another folder: %w", ErrInUse, err)
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("it cannot be written: give this user the right to, or choose another folder: %w", err)
	case isFull(err):
		return fmt.Errorf("%w: make space: %w", ErrFull, err)
	}
	return err
}

// isLock tells an EACCES of the lock from one of the file, which names a path.
func isLock(err error) bool {
	var path *fs.PathError
	return !errors.As(err, &path)
}

// openDB opens Pebble and reads the bounds of the queues.
func (s *Store) openDB() error {
	there, err := s.checkFiles()
	if err != nil {
		return err
	}
	if err := checkRoom(s.options.FS, s.options.Dir); err != nil {
		return err
	}
	s.disk.beginOpening()
	if err := checkClean(s.options.FS, s.options.Dir); err != nil {
		return plainly(err)
	}
	// From here on the files change: one that is killed now must not be told next time that they are not as they were.
	if err := forget(s.options.FS, s.options.Dir, cleanName); err != nil {
		return plainly(err)
	}
	if err := s.prepareLog(); err != nil {
		return s.damage(plainly(err))
	}
	if err := noteOpening(s.options.FS, s.options.Dir); err != nil {
		return plainly(err)
	}
	db, err := s.openPebble()
	if err == nil && !there {
		// The first log of a new folder is in an older format, in which damage in its middle looks like its end.
		if err = db.Close(); err == nil {
			db, err = s.openPebble()
		}
	}
	if err != nil {
		return s.damage(plainly(err))
	}
	s.handleMu.Lock()
	s.handle = &handle{db: db}
	s.handleMu.Unlock()
	if err := errors.Join(s.load(db), s.segments.open(db)); err != nil {
		return errors.Join(s.damage(err), s.closeDB())
	}
	if err := forget(s.options.FS, s.options.Dir, openingName); err != nil {
		return errors.Join(plainly(err), s.closeDB())
	}
	if err = s.disk.opened(); err == nil && s.options.Flush == FlushSync {
		err = forget(s.options.FS, s.options.Dir, syncedName) // Pebble has moved out of the logs of before.
	}
	if err != nil {
		return errors.Join(plainly(err), s.closeDB())
	}
	return nil
}

// openPebble is pebble.Open, whose fatal errors are its errors.
func (s *Store) openPebble() (db *pebble.DB, err error) {
	// Pebble takes the memory of its tables out of the cache: without their share nothing that is read stays.
	cache := pebble.NewCache(s.options.CacheBytes + 2*s.options.MemTableBytes)
	defer cache.Unref()
	compactions := newCompactions()
	defer func() {
		if err != nil {
			compactions.Unregister() // Pebble may have registered and not said that it goes.
		} else {
			compactions.begin()
		}
	}()
	defer caught(&err)
	db, err = pebble.Open(s.options.Dir, s.pebbleOptions(cache, compactions))
	kept := s.disk.kept()
	switch {
	case kept == nil:
		return db, err
	case err != nil:
		return nil, fmt.Errorf("%w; then %s", kept, err.Error()) // Pebble may have missed what it thought to have written.
	}
	return nil, errors.Join(kept, db.Close())
}

// prepareLog repairs what FlushAsync may leave, and says if it is in use now.
func (s *Store) prepareLog() error {
	if err := s.disk.doubts.renew(s.options.FS, s.options.Dir); err != nil {
		return err
	}
	lost, err := mendLog(s.options.FS, s.options.Dir, &s.disk.doubts)
	if err != nil {
		return err
	}
	if lost > 0 {
		s.options.Logger.Warn("the machine went down before the end of the log was on the disk (flush: async): it is lost",
			"folder", s.options.Dir, "bytes", lost)
	}
	if err := syncLast(s.options.FS, s.options.Dir, &s.disk.doubts); err != nil {
		return err
	}
	if s.options.Flush == FlushAsync {
		return claimLog(s.options.FS, s.options.Dir)
	}
	return nil
}

// openingName is the file that is there while Pebble opens. When that ends by an error there may be no log left, with all that it
// had in tables; at any other time a folder without a log has lost something.
const openingName = "OPENING"

func noteOpening(fs vfs.FS, dir string) error {
	f, err := fs.Create(fs.PathJoin(dir, openingName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// forget removes a file of the store's own, if it is there.
func forget(fs vfs.FS, dir, name string) error {
	err := fs.Remove(fs.PathJoin(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// blockSize is how much is read, written and checked at once.
const blockSize = 31 << 10

func (s *Store) pebbleOptions(cache *pebble.Cache, compactions *compactions) *pebble.Options {
	o := &pebble.Options{
		FS: s.disk, Cache: cache, Lock: s.lock, Logger: logger{s.options.Logger, s},
		FormatMajorVersion:          pebble.FormatValueSeparation,
		MemTableSize:                uint64(s.options.MemTableBytes), //nolint:gosec // not negative
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       64,
		MaxOpenFiles:                512,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
	}
	// Messages are written once and never change: apart from the keys they need not be moved by compactions.
	o.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy {
		return pebble.ValueSeparationPolicy{
			Enabled: true, MinimumSize: 256, MaxBlobReferenceDepth: 10, RewriteMinimumAge: time.Minute, TargetGarbageRatio: 0.5,
		}
	}
	// Blobs have blocks of this size too. A pull reads some 32 KiB behind each other, and each block is a read, a write, a
	// checksum and an entry of the cache.
	for i := range o.Levels {
		o.Levels[i].BlockSize = blockSize
	}
	// The keys of a table are small: tables of Pebble's usual size would be many, each with a blob of its own.
	o.TargetFileSizes[0] = 8 << 20
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	o.Experimental.CompactionScheduler = compactions
	o.EventListener = &pebble.EventListener{DataCorruption: s.onDamage, CompactionEnd: compactions.ended}
	return o
}

// checkFiles finds out what Pebble would take for a new store, one whose description is missing, and whether there is one.
func (s *Store) checkFiles() (there bool, err error) {
	dir, fs := s.options.Dir, s.options.FS
	d, err := pebble.Peek(dir, fs)
	if err != nil {
		return false, s.damage(plainly(err))
	}
	names, err := fs.List(dir)
	if err != nil {
		return false, plainly(err)
	}
	logs := 0
	for _, name := range names {
		isLog := strings.HasSuffix(name, ".log")
		if isLog {
			logs++
		}
		if !d.Exists && (isLog || strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob") || strings.HasSuffix(name, segmentSuffix)) {
			return false, fmt.Errorf("%w: it has %s, but the files MANIFEST-… and marker.manifest… that go with it are missing: restore the folder from a backup", ErrDamaged, name)
		}
	}
	if d.Exists && logs == 0 && !exists(fs, fs.PathJoin(dir, openingName)) {
		return false, fmt.Errorf("%w: its log, a file NNNNNN.log, is missing: restore the folder from a backup", ErrDamaged)
	}
	return d.Exists, nil
}

// damage says of an error of Pebble's start what it means.
func (s *Store) damage(err error) error {
	text := err.Error()
	switch {
	case errors.Is(err, ErrNewer), errors.Is(err, ErrInUse), errors.Is(err, ErrFull), errors.Is(err, ErrForeign), errors.Is(err, os.ErrPermission):
		return err
	case strings.Contains(text, "unknown format major version"), strings.Contains(text, "format major version") && strings.Contains(text, "newer"):
		return fmt.Errorf("%w of streamd, whose files this one (format %d) cannot read: use that version: %w", ErrNewer, format, err)
	case pebble.IsCorruptionError(err), errors.Is(err, os.ErrNotExist), strings.Contains(text, "object size mismatch"):
		return damagedFile(s.options.FS, s.options.Dir, err)
	}
	return err
}

// checkEmpty refuses a Pebble that something else was stored in.
func checkEmpty(db *pebble.DB) error {
	it, err := db.NewIter(nil)
	if err != nil {
		return err
	}
	if it.First() {
		return errors.Join(fmt.Errorf("%w: it has tables of something else, with the key %q: choose another folder", ErrForeign, it.Key()), it.Close())
	}
	return ended(it, it.Error())
}

// load reads what is kept in memory.
func (s *Store) load(db *pebble.DB) error {
	if err := checkFormat(db); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.topics, s.numbers = make(map[string][]*queue), make(map[uint32]*queue)
	s.lastNumber, s.nextLog, s.segment = 0, 0, -1
	if v, err := get(db, []byte{prefixCounter}); err != nil {
		return err
	} else if len(v) == 4 {
		s.lastNumber = order.Uint32(v)
	}
	err := scan(db, []byte{prefixQueue}, func(k, v []byte) error {
		if len(k) < 1+1+4 || len(v) != 4+boundsSize {
			return fmt.Errorf("%w: the entry %q of a queue is %q", ErrDamaged, k, v)
		}
		q := &queue{topic: string(k[1 : len(k)-5]), id: int32(order.Uint32(k[len(k)-4:])), number: order.Uint32(v)} //nolint:gosec // written by us
		q.bounds = bounds{int64(order.Uint64(v[4:])), int64(order.Uint64(v[12:]))}
		q.visible = q.next
		s.placeLocked(q)
		return nil
	})
	if err != nil {
		return err
	}
	s.scheduled = 0
	err = scan(db, []byte{prefixSchedule}, func(_, _ []byte) error {
		s.scheduled++
		return nil
	})
	if err != nil {
		return err
	}
	return s.loadLogLocked(db)
}

// loadLogLocked finds the end of the log.
func (s *Store) loadLogLocked(db *pebble.DB) error {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefixLog}, UpperBound: []byte{prefixLog + 1}})
	if err != nil {
		return err
	}
	if it.Last() {
		k, v := it.Key(), it.Value()
		r, ok := readRun(v)
		if !ok || len(k) != 9 {
			return errors.Join(fmt.Errorf("%w: the last entry of the log is %q: %q", ErrDamaged, k, v), it.Close())
		}
		s.nextLog = int64(order.Uint64(k[1:])) + int64(r.bytes)
		s.clock.atLeast(r.millis)
	}
	s.left = s.nextLog
	return ended(it, it.Error())
}

// checkFormat refuses a newer format and writes this one into a new store.
func checkFormat(db *pebble.DB) (err error) {
	defer caught(&err)
	v, err := get(db, []byte{prefixVersion})
	switch {
	case err != nil:
		return err
	case v == nil:
		if err := checkEmpty(db); err != nil {
			return err
		}
		return db.Set([]byte{prefixVersion}, order.AppendUint32(nil, firstFormat), pebble.Sync)
	case len(v) != 4:
		return fmt.Errorf("%w: its format version is %q", ErrDamaged, v)
	case order.Uint32(v) > format:
		return fmt.Errorf("%w of streamd in format %d, and this one reads formats up to %d: use that version", ErrNewer, order.Uint32(v), format)
	}
	return nil
}
