package store

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// damagedFile says that err, which is of Pebble, comes from a damaged file, and of which one where that is known.
func damagedFile(fs vfs.FS, dir string, err error) error {
	path, detail := fileOf(fs, dir, err)
	if path == "" {
		return fmt.Errorf("%w: restore the folder from a backup: %w", ErrDamaged, err)
	}
	return errDamaged(path, detail)
}

// damagedError is ErrDamaged with a file.
type damagedError struct{ path, detail string }

func errDamaged(path, detail string) error { return &damagedError{path, detail} }

// Error says which file it is.
func (e *damagedError) Error() string {
	return fmt.Sprintf("%v: its file %s is not as it was written: restore the folder from a backup: %s", ErrDamaged, e.path, e.detail)
}

// Unwrap returns ErrDamaged.
func (*damagedError) Unwrap() error { return ErrDamaged }

// fileOf finds the file that an error of Pebble is of, and what the error says besides. Of a blob the error knows the number
// alone.
func fileOf(fs vfs.FS, dir string, err error) (path, detail string) {
	detail = err.Error()
	info := pebble.ExtractDataCorruptionInfo(err)
	if info != nil {
		path, detail = info.Path, info.Details.Error()
	}
	before, rest, named := strings.Cut(detail, "pebble: file ")
	number, after, whole := strings.Cut(rest, ": ")
	if !named || !whole || before != "" || strings.Trim(number, "0123456789") != "" {
		return path, detail
	}
	for _, suffix := range []string{".blob", ".sst"} {
		if at := fs.PathJoin(dir, number+suffix); path == "" && exists(fs, at) {
			path = at
		}
	}
	if path == "" {
		return "", detail
	}
	return path, after // The file is named already.
}

func exists(fs vfs.FS, path string) bool {
	_, err := fs.Stat(path)
	return err == nil
}

// onDamage hears that a file turned out to be damaged while it was read. By default Pebble would ask for the end of the
// process. Here whoever reads that place gets an error, each time, and everything else goes on: one bad block is no reason to
// refuse what other queues have. The operator is told once a file.
func (s *Store) onDamage(info pebble.DataCorruptionInfo) {
	_, detail := fileOf(s.options.FS, s.options.Dir, info.Details)
	s.tellDamage(info.Path, detail)
}

func (s *Store) tellDamage(path, detail string) {
	if _, known := s.damaged.LoadOrStore(path, true); known {
		return
	}
	s.options.Logger.Error("a file is damaged: what it has cannot be read; restore the folder from a backup", "file", path, "error", detail)
}

// corrupt is the error of a read that came upon a damaged file.
func (s *Store) corrupt(err error) error {
	if path, detail := fileOf(s.options.FS, s.options.Dir, err); path != "" {
		s.tellDamage(path, detail)
	}
	return damagedFile(s.options.FS, s.options.Dir, err)
}

// The end of a blob, by Pebble's format: a checksum of what follows it, and at last words that every blob ends with.
const (
	blobFooterSize = 38
	blobMagic      = "\xf0\x9f\xaa\xb3\xf0\x9f\xa6\x80"
)

// blobFault tells what is wrong with the end of a blob, "" for nothing. Pebble, which finds that when it opens the file, ends
// the process by a panic.
func blobFault(f vfs.File) (fault string, err error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.Size() < blobFooterSize {
		return "it is too short", nil
	}
	footer := make([]byte, blobFooterSize)
	if _, err := f.ReadAt(footer, info.Size()-blobFooterSize); err != nil {
		return "", err
	}
	sum := crc32.Checksum(footer[4:], crc32.MakeTable(crc32.Castagnoli))
	if binary.LittleEndian.Uint32(footer) != (sum>>15|sum<<17)+0xa282ead8 || !strings.HasSuffix(string(footer), blobMagic) {
		return "its end has another checksum", nil
	}
	return "", nil
}
