package process

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrChecksum is wrapped by the error of an executable that is not the one the config names.
var ErrChecksum = errors.New("checksum differs")

// Executable is an opened, checked and hashed program. It stays the same program even if its path is replaced.
type Executable struct {
	Path     string // absolute, as found
	Checksum string // "sha256:" and 64 hex digits, of the bytes that will run
	Script   bool   // starts with "#!": the checksum covers the script, not its interpreter

	file *os.File
}

// Open finds a program, checks that this machine can run it, and hashes it. A name without a slash is looked up in the
// host's PATH. want is "" or the expected checksum, with or without "sha256:". The caller closes the Executable; one
// may be started several times before.
func Open(name, want string) (*Executable, error) {
	path, err := find(name)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, explainOpen(path, err)
	}
	e := &Executable{Path: path, file: file}
	if err := e.check(want); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return e, nil
}

// Close releases the descriptor. Processes that run it are not touched.
func (e *Executable) Close() error { return e.file.Close() }

func find(name string) (string, error) {
	if name == "" {
		return "", errors.New("no command is configured; write the path of the plugin's binary there")
	}
	if !strings.ContainsRune(name, filepath.Separator) {
		found, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("%s is not in PATH (%s); install it, or write its absolute path", name, os.Getenv("PATH"))
		}
		name = found
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return "", fmt.Errorf("making %s absolute: %w", name, err)
	}
	return path, nil
}

func explainOpen(path string, err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s does not exist; install the plugin there or correct its command: %w", path, err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%s cannot be read by uid %d; its checksum needs read permission (chmod a+rx): %w", path, os.Getuid(), err)
	}
	return fmt.Errorf("opening the plugin's binary: %w", err)
}

func (e *Executable) check(want string) error {
	info, err := e.file.Stat()
	if err != nil {
		return fmt.Errorf("looking at %s: %w", e.Path, err)
	}
	switch {
	case info.IsDir():
		return fmt.Errorf("%s is a directory; name the binary inside it", e.Path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file (%s); name a binary", e.Path, info.Mode().Type())
	case info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s is not executable (mode %s); run: chmod +x %s", e.Path, info.Mode().Perm(), e.Path)
	}
	if err := e.checkMount(); err != nil {
		return err
	}
	if err := e.checkFormat(); err != nil {
		return err
	}
	return e.hash(want)
}

func (e *Executable) hash(want string) error {
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(e.file, 0, 1<<62)); err != nil {
		return fmt.Errorf("hashing %s: %w", e.Path, err)
	}
	sum := hex.EncodeToString(h.Sum(nil))
	e.Checksum = "sha256:" + sum
	if want == "" {
		return nil
	}
	want = strings.ToLower(strings.TrimPrefix(want, "sha256:"))
	if subtle.ConstantTimeCompare([]byte(sum), []byte(want)) == 1 {
		return nil
	}
	what := "the binary was replaced or the config is out of date; verify where it came from before you change checksum:"
	if e.Script {
		what = "the checksum covers the script itself, not its interpreter; " + what
	}
	return fmt.Errorf("%s has sha256:%s, the config asks for sha256:%s; %s: %w", e.Path, sum, want, what, ErrChecksum)
}
