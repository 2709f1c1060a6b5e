package process_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/streamd/streamd/internal/pluginhost/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func spawner(t *testing.T) *process.Spawner {
	t.Helper()
	s := process.NewSpawner()
	t.Cleanup(s.Close)
	return s
}

func open(t *testing.T, name string) *process.Executable {
	t.Helper()
	e, err := process.Open(name, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func shell(t *testing.T, s *process.Spawner, script string) *process.Process {
	t.Helper()
	p, err := s.Start(&process.Spec{Executable: open(t, "sh"), Args: []string{"sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.SignalGroup(syscall.SIGKILL)
		<-p.Exited()
		_ = p.Stdout.Close()
		_ = p.Stderr.Close()
	})
	return p
}

func waitExit(t *testing.T, p *process.Process) process.Exit {
	t.Helper()
	select {
	case <-p.Exited():
	case <-time.After(time.Minute):
		t.Fatal("the exit was not noticed")
	}
	return p.Exit()
}

// writeFile keeps other tests from forking meanwhile: their children would have the file open for writing until they execute,
// and what is open for writing cannot be executed (ETXTBSY).
func writeFile(t *testing.T, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plugin")
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(content), mode)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpen_saysWhatIsWrongAndWhatToDo(t *testing.T) {
	t.Parallel()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	foreign := bytes.Clone(self)
	binary.LittleEndian.PutUint16(foreign[18:], 0xF3) // EM_RISCV
	for name, tc := range map[string]struct{ path, want string }{
		"empty name":     {"", "no command"},
		"not in PATH":    {"no-such-plugin-anywhere", "not in PATH"},
		"missing":        {filepath.Join(t.TempDir(), "acme"), "does not exist; install"},
		"directory":      {t.TempDir(), "is a directory; name the binary"},
		"not executable": {writeFile(t, "#!/bin/sh\n", 0o644), "chmod +x"},
		"empty file":     {writeFile(t, "", 0o755), "is empty"},
		"text":           {writeFile(t, "hello", 0o755), "neither a Linux program nor a script"},
		"no interpreter": {writeFile(t, "#!/no/such/interpreter\n", 0o755), "needs the interpreter /no/such/interpreter"},
		"wrong machine":  {writeFile(t, string(foreign), 0o755), "is built for EM_RISCV"},
		"damaged":        {writeFile(t, "\x7fELF", 0o755), "damaged"},
		"device":         {os.DevNull, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := process.Open(tc.path, "")
			if err == nil {
				_ = e.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %q does not say %q", err, tc.want)
			}
		})
	}
}

func TestOpen_checksum(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "#!/bin/sh\nexit 3\n", 0o755)
	e := open(t, path)
	if !e.Script || !strings.HasPrefix(e.Checksum, "sha256:") {
		t.Fatalf("got %+v", e)
	}
	for _, want := range []string{e.Checksum, strings.ToUpper(e.Checksum[7:])} {
		same, err := process.Open(path, want)
		if err != nil {
			t.Fatalf("with its own checksum: %v", err)
		}
		_ = same.Close()
	}
	_, err := process.Open(path, "sha256:00")
	if !errors.Is(err, process.ErrChecksum) || !strings.Contains(err.Error(), "not its interpreter") {
		t.Errorf("error %v", err)
	}
}

// What was hashed runs, even when the path is replaced in between.
func TestStart_runsWhatWasHashed(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "#!/bin/sh\nexit 3\n", 0o755)
	e := open(t, path)
	other := writeFile(t, "#!/bin/sh\nexit 4\n", 0o755)
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	p, err := spawner(t).Start(&process.Spec{Executable: e, Args: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(p.Stdout.Close(), p.Stderr.Close()) }()
	if exit := waitExit(t, p); exit.Code != 3 {
		t.Errorf("%s, want 3 from the script that was hashed", exit)
	}
}

func TestProcess_exitsAreTold(t *testing.T) {
	t.Parallel()
	s := spawner(t)
	if got := waitExit(t, shell(t, s, "exit 7")).String(); got != "exit status 7" {
		t.Errorf("got %q", got)
	}
	p := shell(t, s, "kill -9 $$")
	if got := waitExit(t, p); got.Signal != syscall.SIGKILL || got.String() != "ended by signal 9 (killed)" {
		t.Errorf("got %q", got)
	}
	if err := p.SignalGroup(syscall.SIGTERM); err != nil {
		t.Errorf("signaling a process that is gone: %v", err)
	}
}

// A grandchild that holds the pipes delays nothing, and dies with its group.
func TestProcess_grandchildDelaysNothing(t *testing.T) {
	t.Parallel()
	p := shell(t, spawner(t), "sleep 300 & echo $!; exit 0")
	if exit := waitExit(t, p); exit.Code != 0 {
		t.Errorf("%s", exit)
	}
	if time.Since(p.Since) > time.Minute { // the grandchild lives for five
		t.Errorf("noticed after %s", time.Since(p.Since))
	}
	out, err := io.ReadAll(p.Stdout) // ends only when nobody holds the pipe
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(out), &pid); err != nil {
		t.Fatal(err)
	}
	for deadline := time.After(time.Minute); !slices.Contains([]string{"", "Z", "X"}, processState(pid)); goruntime.Gosched() {
		select {
		case <-deadline:
			t.Fatalf("the grandchild %d lives (%s)", pid, processState(pid))
		default: // the signal is under way
		}
	}
}

// processState reads the state letter of a pid, "" when it is gone.
func processState(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return fields[0]
}

func TestSpawner_startsNothingAfterClose(t *testing.T) {
	t.Parallel()
	s := process.NewSpawner()
	s.Close()
	s.Close()
	if _, err := s.Start(&process.Spec{Executable: open(t, "sh")}); !errors.Is(err, process.ErrClosed) {
		t.Errorf("starting after Close: %v", err)
	}
}

// Environments hold what the config gives and a short list; a secret of the host stays there.
func TestEnvironment(t *testing.T) {
	t.Setenv("STREAMD_SECRET_KEY", "x")
	t.Setenv("FOO", "1")
	t.Setenv("LANG", "C.UTF-8")
	t.Setenv("TMPDIR", "/var/tmp")
	got := process.Environment(map[string]string{"DB_URL": "u", "TMPDIR": "/mine"}, map[string]string{"STREAMD_X": "y", "DB_URL": "host"})
	for _, want := range []string{"DB_URL=host", "LANG=C.UTF-8", "TMPDIR=/mine", "STREAMD_X=y"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	merged := process.MergeEnv(got, []string{"DB_URL=later", "NEW=1"})
	if len(merged) != len(got)+1 || slices.Contains(merged, "DB_URL=host") || !slices.Contains(merged, "DB_URL=later") {
		t.Errorf("merged: %q", merged)
	}
	for _, kv := range got {
		if strings.HasPrefix(kv, "FOO=") || strings.HasPrefix(kv, "STREAMD_SECRET_KEY=") {
			t.Errorf("%s leaked", kv)
		}
	}
}

func TestRunDir_sweepsTheDead(t *testing.T) {
	t.Parallel()
	base := filepath.Join(t.TempDir(), "r")
	first, err := process.OpenRunDir(base)
	if err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(base, "h-dead")
	if err := os.MkdirAll(filepath.Join(dead, "plugin-dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dead, "lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(base, "h-foreign")
	if err := os.MkdirAll(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	second, err := process.OpenRunDir(base)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{first.Path: true, second.Path: true, dead: false, foreign: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: there %t, want %t", path, err == nil, want)
		}
	}
	info, err := os.Stat(first.Path)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(base, "h-*")); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Hosts that start and stop at one moment sweep each other's directories while they are being made: each has its own in the
// end.
func TestRunDir_sweptEarly(t *testing.T) {
	t.Parallel()
	base := filepath.Join(t.TempDir(), "r")
	var hosts sync.WaitGroup
	for range 8 {
		hosts.Go(func() {
			for range 100 {
				dir, err := process.OpenRunDir(base)
				if err != nil {
					t.Error(err)
					return
				}
				if err := os.Mkdir(filepath.Join(dir.Path, "g1"), 0o700); err != nil {
					t.Error(err)
				}
				if err := dir.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	hosts.Wait()
}

func TestRunDir_tooLong(t *testing.T) {
	t.Parallel()
	_, err := process.OpenRunDir(filepath.Join(t.TempDir(), strings.Repeat("x", 93)))
	if err == nil || !strings.Contains(err.Error(), "limit of 107 bytes") {
		t.Errorf("error %v", err)
	}
}

// A default directory that leaves no room for sockets is passed over, whatever the environment says.
func TestRunDirByDefaultAlwaysFits(t *testing.T) {
	for n := range 110 {
		t.Setenv("XDG_RUNTIME_DIR", filepath.Join("/tmp", strings.Repeat("x", n)))
		t.Setenv("TMPDIR", filepath.Join("/tmp", strings.Repeat("y", 110-n)))
		dir, err := process.OpenRunDir("")
		if err != nil {
			t.Fatalf("XDG_RUNTIME_DIR of %d bytes: %v", n+5, err)
		}
		base := filepath.Dir(dir.Path)
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
		if filepath.Dir(base) != "/tmp" { // ours alone: made by this test
			if err := os.RemoveAll(filepath.Dir(base)); err != nil {
				t.Error(err)
			}
		}
	}
}
