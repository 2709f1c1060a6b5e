package store_test

import (
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker/faultfs"
	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/logtest"
)

// TestFailedCompaction_pauses: tables of the first level that cannot be read are not tried again without end, messages are
// stored meanwhile, and what was put off is done when they can be read.
func TestFailedCompaction_pauses(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		fs, log := faultfs.New(vfs.NewMem()), &logtest.Log{}
		s := open(t, store.Options{FS: fs, MemTableBytes: 64 << 10, CacheBytes: 1, Logger: slog.New(slog.NewTextHandler(log, nil))})
		hit, lift := fs.Inject(faultfs.Fault{Op: faultfs.Read, Suffix: ".sst", Err: syscall.EIO})
		for i := range 400 {
			put(t, s, "T", record(t, "T", fmt.Sprint(i, strings.Repeat("x", 1000)), 0))
		}
		<-hit
		<-time.After(2 * time.Minute)
		tries := log.Count("input/output error")
		if tries < 5 || tries > 20 {
			t.Errorf("tried %d times in two minutes, want about a dozen", tries)
		}
		put(t, s, "T", record(t, "T", "stored meanwhile", 0))
		tables := countFiles(t, fs, ".sst")
		lift()
		<-time.After(time.Minute)
		if after := log.Count("input/output error"); after > tries+1 {
			t.Errorf("failed %d times more after the fault", after-tries)
		}
		if now := countFiles(t, fs, ".sst"); now >= tables {
			t.Errorf("%d tables, as many as the %d before: nothing was compacted", now, tables)
		}
		checkDense(t, s, "T", 0)
	})
}

func countFiles(t *testing.T, fs vfs.FS, suffix string) (n int) {
	t.Helper()
	names, err := fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, suffix) {
			n++
		}
	}
	return n
}
