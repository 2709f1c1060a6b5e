package sdktest_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/border"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/sdk/sdktest"
)

// binaries are built once for all tests: linking a plugin takes longer than any of them.
type binaries struct {
	dir  string
	odd  func() (string, error)
	good func() (string, error)
}

var built = newBinaries()

func newBinaries() *binaries {
	b := &binaries{}
	compile := func(name, source string) func() (string, error) {
		return sync.OnceValues(func() (string, error) {
			binary := filepath.Join(b.dir, name)
			out, err := exec.Command("go", "build", "-o", binary, source).CombinedOutput()
			if err != nil {
				err = fmt.Errorf("building %s: %w\n%s", source, err, out)
			}
			return binary, err
		})
	}
	b.odd, b.good = compile("odd", "./testdata/odd"), compile("orders", "../../plugins/orders")
	return b
}

func binary(t *testing.T, build func() (string, error)) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFirstPartyBinaryConforms(t *testing.T) {
	sdktest.RunBinary(t, binary(t, built.good), map[string]string{"orders": `{"fail_once": 7}`})
}

func TestPrintsDoNotBreakTheHandshake(t *testing.T) {
	p := sdktest.StartBinary(t, binary(t, built.odd))
	got := p.Configure("odd", `{}`).Deliver(sdktest.Message{ID: "print"}, sdktest.Message{ID: "nil"}, sdktest.Message{ID: "3"})
	for i, want := range []sdktest.Kind{sdktest.Acked, sdktest.Retried, sdktest.Acked} {
		if got[i].Kind != want {
			t.Errorf("message %d: %+v, want %s", i, got[i], want)
		}
	}
}

func TestRunByHandSaysHow(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), binary(t, built.odd))
	cmd.Env = []string{}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), "streamd plugin describe") {
		t.Errorf("exit %v, output %q", err, out)
	}
}

// start starts a plugin without go-plugin's client and returns once it has printed its handshake.
func start(t *testing.T, plugin string, env ...string) (cmd *exec.Cmd, handshake string, stderr *os.File) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.CommandContext(t.Context(), plugin)
	cmd.Env = append(slices.Clone(env), border.CookieKey+"="+border.CookieValue, "PLUGIN_PROTOCOL_VERSIONS=1", "PLUGIN_UNIX_SOCKET_DIR="+t.TempDir())
	cmd.Stderr = writer
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); _ = reader.Close() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("reading the handshake: %v", err)
	}
	return cmd, line, reader
}

func TestHandshakeIsAllThatStdoutGets(t *testing.T) {
	_, line, stderr := start(t, binary(t, built.odd))
	if fields := strings.Split(strings.TrimSpace(line), "|"); len(fields) < 5 || fields[0] != "1" || fields[1] != "1" || fields[4] != "grpc" {
		t.Fatalf("handshake %q", line)
	}
	text, err := bufio.NewReader(stderr).ReadString('\n')
	if err != nil || !strings.Contains(text, "printed while packages are initialized") {
		t.Errorf("stderr begins with %q, %v", text, err)
	}
}

func TestSIGINTIsIgnoredAndTheParentsDeathIsNot(t *testing.T) {
	plugin := binary(t, built.odd)
	// A shell stands for the host: it starts the plugin, and is killed.
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	shell := exec.CommandContext(t.Context(), "/bin/sh", "-c", `/bin/sh -c 'echo $$; exec "$0"' "$0" & wait`, plugin) // its pid comes first
	shell.Env = []string{border.CookieKey + "=" + border.CookieValue, "PLUGIN_PROTOCOL_VERSIONS=1", "PLUGIN_UNIX_SOCKET_DIR=" + t.TempDir()}
	shell.Stdout = writer
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	lines := bufio.NewReader(reader)
	first, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lines.ReadString('\n'); err != nil { // the handshake: signals are handled from here on
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the plugin is gone after SIGINT: %v", err)
	}
	if err := shell.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = shell.Wait()
	ended := make(chan error, 1)
	go func() { _, err := io.Copy(io.Discard, lines); ended <- err }() // EOF when the last writer of stdout is gone
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Error("the plugin outlived its parent by a minute")
	}
}

func TestSharedPageNamesTheSuspectOfACrash(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "page"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	size := frame.PageSize(4, 64)
	if err := file.Truncate(int64(size)); err != nil {
		t.Fatal(err)
	}
	mem, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(mem) }()
	page, err := frame.InitPage(mem, 4, 64)
	if err != nil {
		t.Fatal(err)
	}
	// go-plugin passes no descriptors in its own test helper, so the file is opened again by the plugin's shell.
	script := filepath.Join(t.TempDir(), "plugin.sh")
	text := "#!/bin/sh\nexec 7<>" + file.Name() + "\nexec " + binary(t, built.odd) + "\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	p := sdktest.StartBinary(t, script, border.EnvPageFD+"=7")
	lane := p.Configure("odd", `{}`).Open(sdktest.Options{Lane: 2, Generation: 9, Concurrency: 1}) // nothing runs beside the one that dies
	first := lane.Send(sdktest.Message{ID: "1"}, sdktest.Message{ID: "2"})
	lane.Wait(first, 2)
	row, _ := page.Row(2)
	if runs, complete := row.Running(9); len(runs) != 0 || !complete {
		t.Errorf("while idle the page says %v, %v", runs, complete)
	}
	lane.Send(sdktest.Message{ID: "3"}, sdktest.Message{ID: "die"})
	lane.Ended()
	runs, complete := row.Running(9)
	if len(runs) != 1 || runs[0] != (frame.Run{Seq: 2, Index: 1, Count: 1}) || !complete {
		t.Errorf("after the crash the page says %+v, %v", runs, complete)
	}
}
