package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/logtest"
)

// manyStored is a closed store with so many messages of a size that they are in tables, or in blobs: changes are too small for a
// segment.
func manyStored(t *testing.T, n, size, memTable int) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewMem()
	s := open(t, store.Options{FS: fs, MemTableBytes: int64(memTable)})
	for i := 0; i < n; {
		var records []store.Record
		for ; i < n && len(records) < 10; i++ {
			records = append(records, record(t, "T", fmt.Sprint(i, strings.Repeat("x", size)), 0))
		}
		put(t, s, "T", records...)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return fs
}

// TestDamagedMessage is a file that is found damaged when a message is read: its reader is told, each time, and so is the
// operator, once. Everything else is stored and read on.
func TestDamagedMessage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size   int
		suffix string
		says   string
	}{
		"in a table": {20, ".sst", "data/0"},
		"in a blob":  {1000, ".blob", "data/0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fs := manyStored(t, 2000, c.size, 256<<10)
			rewrite(t, fs, c.suffix, func(content []byte) []byte {
				if len(content) > 20<<10 { // The small ones are needed for opening.
					content[len(content)/3] ^= 0xff
				}
				return content
			})
			var log logtest.Log
			s := open(t, store.Options{FS: fs, CacheBytes: 1, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
			at := int64(0)
			for ; at < 2000; at++ {
				if _, err := s.Read("T", 0, at, limits, store.Match{}); err != nil {
					break
				}
			}
			for range 3 {
				r, err := s.Read("T", 0, at, limits, store.Match{})
				if !errors.Is(err, store.ErrDamaged) || !namesOnce(err, c.says, c.suffix) {
					t.Fatalf("reading message %d: %+v, %v", at, r, err)
				}
			}
			put(t, s, "Other", record(t, "Other", "new", 0))
			if r := read(t, s, "Other", 0, limits, nil); len(r.Messages) != 1 {
				t.Errorf("another topic: %+v", r)
			}
			if r := read(t, s, "T", 1999, limits, nil); len(r.Messages) != 1 {
				t.Errorf("another message: %+v", r)
			}
			if told := damages(&log); len(told) != 1 || strings.Count(told[0], c.suffix) != 1 {
				t.Errorf("the operator was told %d times: %s", len(told), &log)
			}
		})
	}
}

// damages are the lines that tell the operator of a damaged file: compactions that meet it say so besides.
func damages(log *logtest.Log) (lines []string) {
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "a file is damaged") {
			lines = append(lines, line)
		}
	}
	return lines
}

// namesOnce tells that an error names a file, and does not do so twice.
func namesOnce(err error, path, suffix string) bool {
	text := err.Error()
	number, _, _ := strings.Cut(text[strings.Index(text, path)+len("data/"):], ".")
	return strings.Count(text, suffix) == 1 && strings.Count(text, number) == 1
}

// TestDamagedBlob is one whose end is damaged, which Pebble looks at when it opens the file: its readers are told, and the process
// goes on.
func TestDamagedBlob(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func([]byte) []byte{
		"end":   func(c []byte) []byte { c[len(c)-20] ^= 0xff; return c },
		"cut":   func(c []byte) []byte { return c[:len(c)/2] },
		"empty": func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fs := manyStored(t, 300, 1000, 64<<10)
			var log logtest.Log
			o := store.Options{Dir: "data", FS: fs, CacheBytes: 1, Logger: slog.New(slog.NewJSONHandler(&log, nil))}
			rewrite(t, fs, ".blob", change)
			s, err := store.Open(o)
			if err == nil {
				_, err = s.Read("T", 0, 0, limits, store.Match{})
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			if !errors.Is(err, store.ErrDamaged) || !namesOnce(err, "data/0", ".blob") {
				t.Errorf("reading says %v; the log: %s", err, &log)
			}
		})
	}
}

// TestDamagedTable is a damaged file that opening needs.
func TestDamagedTable(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(content []byte) []byte{
		"no footer": func(c []byte) []byte { return append(c[:len(c)-16], make([]byte, 16)...) },
		"cut":       func(c []byte) []byte { return c[:len(c)/2] },
		"blocks":    func(c []byte) []byte { return append(bytes.Repeat([]byte{1}, len(c)/2), c[len(c)/2:]...) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fs := manyStored(t, 300, 1000, 64<<10)
			rewrite(t, fs, ".sst", change)
			s, err := store.Open(store.Options{Dir: "data", FS: fs})
			if err == nil {
				t.Fatal("was opened", s.Close())
			}
			if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), ".sst") {
				t.Errorf("opening says %q", err)
			}
		})
	}
}

func rewrite(t *testing.T, fs *vfs.MemFS, suffix string, change func([]byte) []byte) {
	t.Helper()
	names, err := fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		f, err := fs.Open("data/" + name)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		content := make([]byte, info.Size())
		_, err = f.ReadAt(content, 0)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		if f, err = fs.Create("data/"+name, vfs.WriteCategoryUnspecified); err != nil {
			t.Fatal(err)
		}
		_, err = f.Write(change(content))
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
