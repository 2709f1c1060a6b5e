package store

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Flush says when a change counts as stored.
type Flush int

// The ways to flush.
const (
	// FlushSync: when the disk has it.
	FlushSync Flush = iota
	// FlushAsync: when the operating system has it, which writes it to the disk soon.
	FlushAsync
)

// String is the way's name in configs.
func (f Flush) String() string {
	if f == FlushAsync {
		return "async"
	}
	return "sync"
}

// Options say where a store is and what it may use.
type Options struct {
	// Dir is the store's folder, which is made if need be.
	Dir string
	// FS is where Dir is; the operating system's files by default, and vfs.NewMem() for a store in memory.
	FS    vfs.FS
	Flush Flush
	// FlushInterval is how often FlushAsync brings the log to the disk, 500 ms by default.
	FlushInterval time.Duration
	// CacheBytes is how much memory caches what was read, 64 MiB by default.
	CacheBytes int64
	// MemTableBytes is how much is gathered in memory before it is written out in order, 16 MiB by default. A few times as
	// much may be in memory while much is stored.
	MemTableBytes int64
	// SegmentBytes is how large a file of messages becomes before the next one is begun, 128 MiB by default.
	SegmentBytes int64
	// MinApart is how many bytes are synchronized at once at least that go into a segment under FlushSync, 64 KiB by default: to
	// synchronize a second file costs more than to write fewer bytes twice. How many they become is guessed from the time before.
	MinApart int64
	// MaxPending bounds the bytes of changes that wait to be stored, 256 MiB by default.
	MaxPending int64
	// MinFree is how much of the disk is left free: a disk with less refuses messages. 256 MiB by default, but not more
	// than an eighth of the disk.
	MinFree int64
	// RetainAge expires messages that are older; 0 = none.
	RetainAge time.Duration
	// RetainBytes expires the oldest messages when all together have more bytes; 0 = none.
	RetainBytes int64
	// RetainEvery is how often messages are expired, once a minute by default.
	RetainEvery time.Duration
	// Reopened is told when the store has opened itself again after a failure, before it takes anything new. What was
	// not reported as done may be there or not: tables that were read are to be read again. While that fails, which its error
	// says, the store goes on refusing everything and tries again.
	Reopened func() error
	// Resumed is told when something was stored although its submitter was told that it was not, and after Reopened.
	Resumed func()
	// Suspended is for how long the machine has slept, of which Go's monotonic clock knows nothing. By default the system
	// says so, where it can.
	Suspended func() time.Duration
	Logger    *slog.Logger // by default nothing is logged
}

func (o Options) withDefaults() Options {
	or(&o.FS, vfs.Default)
	or(&o.FlushInterval, 500*time.Millisecond)
	or(&o.CacheBytes, 64<<20)
	or(&o.MemTableBytes, 16<<20)
	or(&o.SegmentBytes, 128<<20)
	or(&o.MinApart, 64<<10)
	or(&o.MaxPending, 256<<20)
	or(&o.MinFree, 256<<20)
	or(&o.RetainEvery, time.Minute)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Resumed == nil {
		o.Resumed = func() {}
	}
	if o.Reopened == nil {
		o.Reopened = func() error { return nil }
	}
	if o.Suspended == nil {
		o.Suspended = suspended
	}
	return o
}

func or[T comparable](v *T, fallback T) {
	var zero T
	if *v == zero {
		*v = fallback
	}
}
