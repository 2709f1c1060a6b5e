package memlimit

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree is a file system below a directory that behaves as cgroupfs does: new directories come with their files.
type tree struct {
	root     string
	readOnly bool
}

func (f tree) path(p string) string { return filepath.Join(f.root, p) }

func (f tree) Mkdir(p string) error {
	if f.readOnly {
		return os.ErrPermission
	}
	if err := os.Mkdir(f.path(p), 0o755); err != nil {
		return err
	}
	for _, name := range []string{"memory.max", "memory.swap.max", "memory.oom.group", "cgroup.kill"} {
		if err := os.WriteFile(filepath.Join(f.path(p), name), nil, 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(f.path(p), "memory.events"), []byte("low 0\noom 0\noom_kill 0\n"), 0o600)
}

func (f tree) Rmdir(p string) error { return os.RemoveAll(f.path(p)) }

func (f tree) Read(p string) (string, error) {
	data, err := os.ReadFile(f.path(p))
	return string(data), err
}

func (f tree) Write(p, value string) error {
	if _, err := os.Stat(f.path(p)); err != nil {
		return err
	}
	return os.WriteFile(f.path(p), []byte(value), 0o600)
}

func (f tree) Open(p string) (*os.File, error) { return os.Open(f.path(p)) }

const parent = "/sys/fs/cgroup/system.slice/streamd.service"

func newTree(t *testing.T, own, control string) tree {
	t.Helper()
	f := tree{root: t.TempDir()}
	for _, dir := range []string{"/proc/self", parent} {
		if err := os.MkdirAll(f.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{"/proc/self/cgroup": own, parent + "/cgroup.subtree_control": control} {
		if err := os.WriteFile(f.path(path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

const delegated = "12:cpu:/x\n0::/system.slice/streamd.service/host\n"

func TestDetect_saysWhatIsMissing(t *testing.T) {
	t.Parallel()
	readOnly := newTree(t, delegated, "cpu memory")
	readOnly.readOnly = true
	for name, tc := range map[string]struct {
		fs   tree
		want string
	}{
		"version 1":     {newTree(t, "4:memory:/x\n", "memory"), "no delegated cgroup v2"},
		"root":          {newTree(t, "0::/\n", "memory"), "no delegated cgroup v2"},
		"no controller": {newTree(t, delegated, "cpu pids"), "does not hand memory"},
		"elsewhere":     {newTree(t, "0::/user.slice/x\n", "memory"), "no cgroup v2 above"},
		"not writable":  {readOnly, "not delegated to this user"},
		"nothing":       {tree{root: t.TempDir()}, "unknown"},
	} {
		if d, reason := detect(tc.fs); d != nil || !strings.Contains(reason, tc.want) {
			t.Errorf("%s: %v, reason %q, want %q", name, d, reason, tc.want)
		}
	}
}

func TestDelegated_limitsOneGroup(t *testing.T) {
	t.Parallel()
	fs := newTree(t, delegated, "cpu memory pids\n")
	d, reason := detect(fs)
	if d == nil {
		t.Fatal(reason)
	}
	g, err := d.Group("acme-3", 256<<20)
	if err != nil {
		t.Fatal(err)
	}
	dir := parent + "/streamd-plugin-acme-3"
	if g.Mechanism() != Cgroups || g.Dir() == nil || g.Exceeded() {
		t.Errorf("mechanism %s, dir %v, exceeded %t", g.Mechanism(), g.Dir(), g.Exceeded())
	}
	if err := g.Kill(); err != nil {
		t.Error(err)
	}
	for file, want := range map[string]string{"memory.max": "268435456", "memory.swap.max": "0", "memory.oom.group": "1", "cgroup.kill": "1"} {
		if got, err := fs.Read(dir + "/" + file); err != nil || got != want {
			t.Errorf("%s is %q (%v), want %q", file, got, err, want)
		}
	}
	if err := fs.Write(dir+"/memory.events", "low 0\noom 1\noom_kill 3\n"); err != nil {
		t.Fatal(err)
	}
	if !g.Exceeded() {
		t.Error("the kernel's kill is not seen")
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(fs.path(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the group is left: %v", err)
	}
}

func TestDelegated_unlimitedClaimsNothing(t *testing.T) {
	t.Parallel()
	d, reason := detect(newTree(t, delegated, "memory"))
	if d == nil {
		t.Fatal(reason)
	}
	g, err := d.Group("free", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close() }()
	if g.Mechanism() != None {
		t.Errorf("mechanism %s", g.Mechanism())
	}
}

func TestResident_countsThisProcess(t *testing.T) {
	t.Parallel()
	if got := Resident(os.Getpid()); got < 1<<20 {
		t.Errorf("%d bytes for a Go process", got)
	}
	if got := Resident(1 << 30); got != 0 {
		t.Errorf("%d bytes for no process", got)
	}
}
