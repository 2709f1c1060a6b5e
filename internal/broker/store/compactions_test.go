package store_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker/store"
)

// rotten is a file system whose tables can be read wrongly from some moment on.
type rotten struct {
	vfs.FS
	now atomic.Bool
}

func (r *rotten) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := r.FS.Open(name, o...)
	if err != nil || !strings.HasSuffix(name, ".sst") {
		return f, err
	}
	return rottenFile{f, r}, nil
}

type rottenFile struct {
	vfs.File
	fs *rotten
}

func (f rottenFile) ReadAt(p []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(p, at)
	if f.fs.now.Load() && n > 0 {
		p[n/2] ^= 0xff
	}
	return n, err
}

// lines is a log that may be read while it is written.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.all.String(), what)
}

// TestCompaction_ofADamagedFilePauses: it cannot work, and is not tried again and again without end.
func TestCompaction_ofADamagedFilePauses(t *testing.T) {
	t.Parallel()
	fs, log := &rotten{FS: vfs.NewMem()}, new(lines)
	s := open(t, store.Options{FS: fs, CacheBytes: 1, MemTableBytes: 64 << 10, Logger: slog.New(slog.NewTextHandler(log, nil))})
	fs.now.Store(true)
	const failing = "writing the files anew"
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	for i := 0; log.count(failing) == 0; i++ {
		select {
		case <-limit.C:
			t.Fatal("no compaction failed")
		default:
			put(t, s, "T", record(t, "T", fmt.Sprint(i, strings.Repeat("x", 1000)), 0))
		}
	}
	<-time.After(2500 * time.Millisecond)
	// After 0, 1, and 3 s, and the statistics of a table or two.
	if n := log.count(failing); n > 8 {
		t.Errorf("it was tried %d times within 3 s", n)
	}
	put(t, s, "Other", record(t, "Other", "x", 0))
}
