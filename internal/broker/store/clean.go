package store

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// cleanName is the file that a store writes when it is closed, with the checksums of the files that a reader cannot tell
// damage in from an end that a power loss tore off: the description and the log. After a crash it is not there, and Pebble's
// rules decide.
const cleanName = "CLEAN"

// writeClean notes what the files of a closed store are.
func writeClean(fs vfs.FS, dir string) error {
	text, err := describeFiles(fs, dir)
	if err != nil {
		return err
	}
	f, err := fs.Create(fs.PathJoin(dir, cleanName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// checkClean compares the files with what they were when the store was closed.
func checkClean(fs vfs.FS, dir string) error {
	was, err := readAll(fs, fs.PathJoin(dir, cleanName))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for line := range bytes.Lines(was) {
		var name string
		var size int64
		var sum uint32
		if _, err := fmt.Sscanf(string(line), "%s %d %x\n", &name, &size, &sum); err != nil || !bytes.HasSuffix(line, []byte("\n")) {
			continue // CLEAN itself is torn: it says nothing.
		}
		isSize, isSum, err := checksum(fs, fs.PathJoin(dir, name))
		if err != nil {
			return fmt.Errorf("%w: its file %s cannot be read: restore the folder from a backup: %w", ErrDamaged, name, err)
		}
		if isSize != size || isSum != sum {
			return fmt.Errorf("%w: its file %s is not as it was written: restore the folder from a backup", ErrDamaged, name)
		}
	}
	return nil
}

func describeFiles(fs vfs.FS, dir string) ([]byte, error) {
	names, err := fs.List(dir)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	for _, name := range names {
		if !strings.HasPrefix(name, "MANIFEST-") && !strings.HasSuffix(name, ".log") {
			continue
		}
		size, sum, err := checksum(fs, fs.PathJoin(dir, name))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&text, "%s %d %x\n", name, size, sum)
	}
	return text.Bytes(), nil
}

// checksum reads a file piece by piece: a log may be as large as the store's memory tables.
func checksum(fs vfs.FS, path string) (size int64, sum uint32, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return 0, 0, err
	}
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	size, err = io.Copy(h, f)
	return size, h.Sum32(), errors.Join(err, f.Close())
}

// readAll reads a small file.
func readAll(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(f)
	return content, errors.Join(err, f.Close())
}
