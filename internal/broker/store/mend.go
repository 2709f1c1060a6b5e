package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// syncedName is the file that says up to where FlushAsync has brought which log to the disk. Pebble is told that each write of
// the log is on the disk at once, so after a power loss it takes the missing end for damage. With this file the two are told
// apart: damage before that point is damage, behind it is what FlushAsync may lose.
const syncedName = "SYNCED"

// temporary ends the names of files that are written whole before they take the place of another one.
const temporary = ".tmp"

// writeSynced notes how much of a log is on the disk. What was noted before stays until then: it is never torn.
func writeSynced(fs vfs.FS, dir, log string, offset int64) error {
	path := fs.PathJoin(dir, syncedName)
	f, err := fs.Create(path+temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, fmt.Sprintf("%s %d\n", log, offset))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return fs.Rename(path+temporary, path)
}

// claimLog says that FlushAsync is in use. What is said already counts: until Pebble has left the log that it is of, a process
// that is killed finds that log as the last one. One that is not spoken of was written by FlushSync, so all of it counts.
func claimLog(fs vfs.FS, dir string) error {
	if _, _, said, err := readSynced(fs, dir); said || err != nil {
		return err
	}
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	last, number := lastLog(names)
	if last == "" {
		return writeSynced(fs, dir, "none", 0)
	}
	read, err := readLog(fs, fs.PathJoin(dir, last), number, func(int64, []byte) (bool, error) { return true, nil })
	if err != nil {
		return err
	}
	return writeSynced(fs, dir, last, read.end)
}

// readSynced reads what writeSynced wrote; false: the store was not used with FlushAsync. A torn file is one of offset 0.
func readSynced(fs vfs.FS, dir string) (log string, offset int64, ok bool, err error) {
	text, err := readAll(fs, fs.PathJoin(dir, syncedName))
	if errors.Is(err, os.ErrNotExist) {
		return "", 0, false, nil
	}
	if err != nil {
		return "", 0, false, err
	}
	log, number, whole := strings.Cut(strings.TrimSuffix(string(text), "\n"), " ")
	offset, torn := strconv.ParseInt(number, 10, 64)
	if torn != nil || !whole {
		return "", 0, true, nil //nolint:nilerr // as said
	}
	return log, offset, true, nil
}

// mendLog cuts the last log where a power loss tore it under FlushAsync, or took a message that it points to, and returns how many
// bytes went. What is left points to what is on the disk.
func mendLog(fs vfs.FS, dir string, doubts *doubts) (lost int64, err error) {
	log, synced, lazy, err := readSynced(fs, dir)
	if err != nil || !lazy {
		return 0, err
	}
	names, err := fs.List(dir)
	if err != nil {
		return 0, err
	}
	last, number := lastLog(names)
	if last == "" {
		return 0, nil
	}
	if last != log {
		synced = 0
	}
	messages, err := newPointed(fs, dir, doubts)
	if err != nil {
		return 0, err
	}
	path := fs.PathJoin(dir, last)
	read, err := readLog(fs, path, number, func(at int64, batch []byte) (bool, error) {
		if at < synced {
			return true, nil // So were the messages.
		}
		return messages.has(batch)
	})
	switch err = errors.Join(err, messages.close()); {
	case err != nil:
		return 0, err
	case read.end+logHead < synced: // A log that was closed ends with a head of no batch.
		return 0, errDamaged(path, fmt.Sprintf("%d bytes of it were on the disk, and behind byte %d it cannot be read", synced, read.end))
	case !read.torn:
		return 0, nil
	}
	return read.size - read.end, cutFile(fs, dir, last, read.end)
}

func lastLog(names []string) (last string, number uint64) {
	for _, name := range names {
		if n, err := strconv.ParseUint(strings.TrimSuffix(name, ".log"), 10, 64); err == nil && strings.HasSuffix(name, ".log") && n >= number {
			last, number = name, n
		}
	}
	return last, number
}

// logRead is what reading a log found.
type logRead struct {
	end  int64 // of what is whole
	size int64 // of the file
	torn bool  // what follows is no end that Pebble recognizes
}

// A block of a log, and what the head of a record takes at most: when less is left in a block, the next one is begun.
const (
	logBlock = 32 << 10
	logHead  = 19
)

// readLog reads a log up to its end, or to the first batch that is damaged or that whole does not take.
func readLog(fs vfs.FS, path string, number uint64, whole func(at int64, batch []byte) (bool, error)) (read logRead, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return read, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return read, err
	}
	read.size = info.Size()
	r := newReader(record.NewReader, f, number)
	var batch bytes.Buffer
	for {
		read.end = r.Offset()
		if left := logBlock - read.end%logBlock; left < logHead {
			read.end += left
		}
		one, err := r.Next()
		if err == nil {
			batch.Reset()
			_, err = batch.ReadFrom(one)
		}
		switch {
		case err == nil:
			if ok, err := whole(read.end, batch.Bytes()); err != nil || !ok {
				read.torn = true
				return read, err
			}
		case errors.Is(err, record.ErrInvalidChunk), errors.Is(err, record.ErrZeroedChunk):
			read.torn = true
			return read, nil
		case errors.Is(err, io.EOF), record.IsInvalidRecord(err):
			return read, nil
		default:
			return read, err
		}
	}
}

// newReader makes a reader of a log by its number, whose type Pebble does not export.
func newReader[N ~uint64](open func(io.Reader, N) *record.Reader, r io.Reader, number uint64) *record.Reader {
	return open(r, N(number))
}

// cutFile replaces a file by its first bytes.
func cutFile(fs vfs.FS, dir, name string, size int64) error {
	from, err := fs.Open(fs.PathJoin(dir, name))
	if err != nil {
		return err
	}
	to, err := fs.Create(fs.PathJoin(dir, name+temporary), vfs.WriteCategoryUnspecified)
	if err != nil {
		return errors.Join(err, from.Close())
	}
	_, err = io.CopyN(to, from, size)
	if err = errors.Join(err, to.Sync(), to.Close(), from.Close()); err != nil {
		return errors.Join(err, forget(fs, dir, name+temporary)) // The disk may be full of it.
	}
	if err := fs.Rename(fs.PathJoin(dir, name+temporary), fs.PathJoin(dir, name)); err != nil {
		return err
	}
	return syncFolder(fs, dir)
}

// syncLast brings the last log to the disk as it is: the next one must not survive it.
func syncLast(fs vfs.FS, dir string, doubts *doubts) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	last, _ := lastLog(names)
	if last == "" {
		return nil
	}
	path := fs.PathJoin(dir, last)
	f, err := fs.Open(path)
	if err != nil {
		return err
	}
	err = f.Sync()
	if err != nil {
		doubts.add(path)
	}
	return errors.Join(err, f.Close())
}
