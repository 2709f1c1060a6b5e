package memlimit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Delegated is the Limiter for a cgroup v2 directory that belongs to the host: it may make groups below it.
type Delegated struct {
	fs  fileSystem
	dir string
}

// fileSystem is what a cgroup needs of one. The kernel's fills a new directory with files and removes it with them, which
// an ordinary one does not do.
type fileSystem interface {
	Mkdir(path string) error
	Rmdir(path string) error
	Read(path string) (string, error)
	Write(path, value string) error
	Open(path string) (*os.File, error)
}

// kernel is the file system itself.
type kernel struct{}

func (kernel) Mkdir(path string) error            { return os.Mkdir(path, 0o755) }
func (kernel) Rmdir(path string) error            { return os.Remove(path) }
func (kernel) Open(path string) (*os.File, error) { return os.Open(path) }

func (kernel) Read(path string) (string, error) {
	data, err := os.ReadFile(path)
	return string(data), err
}

func (kernel) Write(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// Detect finds a directory to make groups in: the parent of the host's own cgroup, when it is cgroup v2, hands memory to
// its children and is writable (systemd: Delegate=yes with DelegateSubgroup=). Without one it returns nil and says what
// is missing.
func Detect() (d *Delegated, reason string) { return detect(kernel{}) }

func detect(fs fileSystem) (*Delegated, string) {
	data, err := fs.Read("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Sprintf("the own cgroup is unknown: %v", err)
	}
	own := ""
	for line := range strings.Lines(data) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			own = path
		}
	}
	if own == "" || own == "/" {
		return nil, "the host is in no delegated cgroup v2"
	}
	dir := filepath.Join("/sys/fs/cgroup", filepath.Dir(own))
	control, err := fs.Read(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return nil, fmt.Sprintf("no cgroup v2 above the host's own: %v", err)
	}
	if !slices.Contains(strings.Fields(control), "memory") {
		return nil, fmt.Sprintf("%s does not hand memory to its children", dir)
	}
	probe := filepath.Join(dir, fmt.Sprintf("streamd-probe-%d", os.Getpid()))
	if err := fs.Mkdir(probe); err != nil {
		return nil, fmt.Sprintf("%s is not delegated to this user: %v", dir, err)
	}
	if err := fs.Rmdir(probe); err != nil {
		return nil, fmt.Sprintf("removing a probe of %s: %v", dir, err)
	}
	return &Delegated{fs, dir}, ""
}

// Group makes a child group with the limit, swap excluded, that dies as a whole.
func (d *Delegated) Group(name string, limit int64) (Group, error) {
	path := filepath.Join(d.dir, "streamd-plugin-"+name)
	if err := d.fs.Mkdir(path); err != nil {
		return nil, fmt.Errorf("making a cgroup for plugin %s: %w", name, err)
	}
	g := &cgroup{fs: d.fs, path: path, limited: limit > 0}
	if err := g.set(limit); err != nil {
		return nil, errors.Join(fmt.Errorf("setting the cgroup of plugin %s: %w", name, err), d.fs.Rmdir(path))
	}
	return g, nil
}

type cgroup struct {
	fs      fileSystem
	path    string
	limited bool
	dir     *os.File
}

func (g *cgroup) set(limit int64) error {
	if limit > 0 {
		if err := g.write("memory.max", strconv.FormatInt(limit, 10)); err != nil {
			return err
		}
		// Without swap the limit is what it says; kernels without swap accounting lack the file.
		if err := g.write("memory.swap.max", "0"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := g.write("memory.oom.group", "1"); err != nil {
		return err
	}
	dir, err := g.fs.Open(g.path)
	g.dir = dir
	return err
}

func (g *cgroup) write(file, value string) error {
	return g.fs.Write(filepath.Join(g.path, file), value)
}

func (g *cgroup) Mechanism() Mechanism {
	if g.limited {
		return Cgroups
	}
	return None
}

func (g *cgroup) Dir() *os.File { return g.dir }

// Exceeded reads the group's counter of kills.
func (g *cgroup) Exceeded() bool {
	data, err := g.fs.Read(filepath.Join(g.path, "memory.events"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(data) {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strings.TrimSpace(n) != "0"
		}
	}
	return false
}

// Kill cannot be escaped by a new session or process group.
func (g *cgroup) Kill() error {
	if err := g.write("cgroup.kill", "1"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("killing cgroup %s: %w", g.path, err)
	}
	return nil
}

// Close removes the group; it must be empty.
func (g *cgroup) Close() error { return errors.Join(g.dir.Close(), g.fs.Rmdir(g.path)) }
