package offsetfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Files is what a store needs of a file system. Names are paths.
type Files interface {
	MkdirAll(dir string) error
	ReadFile(name string) ([]byte, error)
	Create(name string) (File, error) // empty, whether it was there or not
	Rename(from, to string) error     // replaces to in one step
	SyncDir(dir string) error         // makes renames durable
}

// File is one that is being written.
type File interface {
	io.WriteCloser
	Sync() error
}

// disk is the machine's own file system.
type disk struct{}

func (disk) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o750) }

func (disk) ReadFile(name string) ([]byte, error) { return os.ReadFile(name) }

func (disk) Create(name string) (File, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

func (disk) Rename(from, to string) error { return os.Rename(from, to) }

func (disk) SyncDir(dir string) error { return syncDir(dir) }

// write makes text the content of path, and what was there before the content of its backup.
func write(files Files, dir, path string, text []byte) error {
	next := path + newSuffix
	if err := fill(files, next, text); err != nil {
		return err
	}
	switch err := files.Rename(path, path+backupSuffix); {
	case err == nil, errors.Is(err, fs.ErrNotExist): // the first one, or a try before this one stopped between the two renames
	default:
		return fmt.Errorf("keeping the backup: %w", err)
	}
	if err := files.Rename(next, path); err != nil {
		return fmt.Errorf("putting the new file in place: %w", err)
	}
	if err := files.SyncDir(dir); err != nil {
		return fmt.Errorf("syncing the folder: %w", err)
	}
	return nil
}

func fill(files Files, name string, text []byte) (err error) {
	f, err := files.Create(name)
	if err != nil {
		return fmt.Errorf("making the new file: %w", err)
	}
	defer func() {
		if e := f.Close(); err == nil && e != nil {
			err = fmt.Errorf("closing the new file: %w", e)
		}
	}()
	if _, err := f.Write(text); err != nil {
		return fmt.Errorf("writing the new file: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("syncing the new file: %w", err)
	}
	return nil
}
