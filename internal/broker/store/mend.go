package store

import (
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
	last, _ := lastLog(names)
	if last == "" {
		return writeSynced(fs, dir, "none", 0)
	}
	info, err := fs.Stat(fs.PathJoin(dir, last))
	if err != nil {
		return err
	}
	return writeSynced(fs, dir, last, info.Size())
}

// readSynced reads what writeSynced wrote; false: the store was not used with FlushAsync. A torn file is one of offset 0.
func readSynced(fs vfs.FS, dir string) (log string, offset int64, ok bool, err error) {
	f, err := fs.Open(fs.PathJoin(dir, syncedName))
	if errors.Is(err, os.ErrNotExist) {
		return "", 0, false, nil
	}
	if err != nil {
		return "", 0, false, err
	}
	text, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", 0, false, err
	}
	log, number, whole := strings.Cut(strings.TrimSuffix(string(text), "\n"), " ")
	offset, torn := strconv.ParseInt(number, 10, 64)
	if torn != nil || !whole {
		return "", 0, true, nil //nolint:nilerr // as said
	}
	return log, offset, true, nil
}

// mendLog cuts the last log where a power loss tore it under FlushAsync, and returns how many bytes went.
func mendLog(fs vfs.FS, dir string) (lost int64, err error) {
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
	torn, size, err := tornAt(fs, fs.PathJoin(dir, last), number)
	if err != nil || torn < 0 || torn < synced {
		return 0, err // Pebble says what it is.
	}
	return size - torn, cutFile(fs, dir, last, torn)
}

func lastLog(names []string) (last string, number uint64) {
	for _, name := range names {
		if n, err := strconv.ParseUint(strings.TrimSuffix(name, ".log"), 10, 64); err == nil && strings.HasSuffix(name, ".log") && n >= number {
			last, number = name, n
		}
	}
	return last, number
}

// tornAt returns the offset of the first record that is damaged although later ones are there; −1 when there is none.
func tornAt(fs vfs.FS, path string, number uint64) (torn, size int64, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	r := newReader(record.NewReader, f, number)
	for {
		at := r.Offset()
		one, err := r.Next()
		if err == nil {
			_, err = io.Copy(io.Discard, one)
		}
		switch {
		case err == nil:
		case errors.Is(err, record.ErrInvalidChunk), errors.Is(err, record.ErrZeroedChunk):
			return at, info.Size(), nil
		case errors.Is(err, io.EOF), record.IsInvalidRecord(err):
			return -1, info.Size(), nil // An end that Pebble recognizes.
		default:
			return 0, 0, err
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
	err = errors.Join(err, to.Sync(), to.Close(), from.Close())
	if err != nil {
		return err
	}
	if err := fs.Rename(fs.PathJoin(dir, name+temporary), fs.PathJoin(dir, name)); err != nil {
		return err
	}
	folder, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
