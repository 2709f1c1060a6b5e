package demo

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/exitcode"
)

// patience bounds every wait of these tests.
const patience = 2 * time.Minute

// stage is a folder as `make build` leaves it: the config, and what it needs in bin.
func stage(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for to, from := range map[string]string{"bin/streamd": "cmd/streamd", "bin/demo": "tools/demo", "bin/plugins/orders": "plugins/orders"} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", filepath.Join(dir, to), "./"+from)
		cmd.Dir, cmd.Env = "../..", append(os.Environ(), "CGO_ENABLED=0") // as the Makefile does
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("building %s: %v\n%s", from, err, out)
		}
	}
	config, err := os.ReadFile("../../configs/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "configs", "quickstart.yaml"), string(config))
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// process is a demo that runs.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	temp string // its place for temporary files, of its own
	done chan struct{}

	mu    sync.Mutex
	text  string // what it has written
	grown chan struct{}
}

// launched counts the demos, for names that are short and of nobody else.
var launched atomic.Int32

// launch starts the demo in a stage, with its output going to files that set opens, and read from from.
func launch(t *testing.T, dir string, set func(*exec.Cmd) (from io.Reader, closers []io.Closer), args ...string) *process {
	t.Helper()
	temp, err := "", fs.ErrExist
	for errors.Is(err, fs.ErrExist) { // a run that was killed, in another container's numbers, may have left one
		temp = fmt.Sprintf("/tmp/d%s%d", strconv.FormatInt(int64(os.Getpid()), 36), launched.Add(1)) // short: sockets are made in it
		err = os.Mkdir(temp, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, temp: temp, done: make(chan struct{}), grown: make(chan struct{}, 1)}
	p.cmd = exec.Command(filepath.Join(dir, "bin/demo"), args...)
	p.cmd.Dir, p.cmd.Env = dir, append(os.Environ(), "TMPDIR="+temp, "TERM=xterm", "NAMESRV_ADDR=203.0.113.1:9876")
	from, closers := set(p.cmd)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, c := range closers {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.follow(from)
	}()
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // the test looks at the state
		<-read
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended by now
		<-p.done
		if err := os.RemoveAll(temp); err != nil {
			t.Error(err)
		}
	})
	return p
}

// follow keeps what is written, until its end: a terminal ends with EIO.
func (p *process) follow(from io.Reader) {
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		p.text += string(buffer[:n])
		p.mu.Unlock()
		select {
		case p.grown <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text
}

// await waits until the output matches, and returns what the groups matched.
func (p *process) await(what, pattern string) []string {
	p.t.Helper()
	re := regexp.MustCompile(`(?m)` + pattern)
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		if m := re.FindStringSubmatch(p.output()); m != nil {
			return m
		}
		select {
		case <-p.grown:
		case <-p.done:
			if m := re.FindStringSubmatch(p.output()); m != nil {
				return m
			}
			p.t.Fatalf("the demo ended without showing %s:\n%s", what, p.output())
		case <-late.C:
			p.t.Fatalf("the demo does not show %s within %s:\n%s", what, patience, p.output())
		}
	}
}

// ends waits for the end and compares the exit code. A clean end leaves nothing behind.
func (p *process) ends(code int) {
	p.t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-p.done:
	case <-late.C:
		p.t.Fatalf("the demo does not end within %s:\n%s", patience, p.output())
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Fatalf("the demo ended with %d, want %d:\n%s", got, code, p.output())
	}
	p.noOrphans(code == exitcode.OK)
}

// noOrphans looks at once after a clean end, which waits for all processes. Members that were killed take their plugins with
// them, and those need a processor to die.
func (p *process) noOrphans(clean bool) {
	p.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		left := processesWith(p.t, "TMPDIR="+p.temp)
		if len(left) == 0 {
			return
		}
		if clean {
			p.t.Errorf("the demo left processes behind: %q", left)
			return
		}
		select {
		case <-tick.C:
		case <-late.C:
			p.t.Errorf("the demo left processes behind, %s after its end: %q", patience, left)
			return
		}
	}
}

func (p *process) noFiles() {
	p.t.Helper()
	left, err := os.ReadDir(p.temp)
	if err != nil || len(left) > 0 {
		p.t.Errorf("the demo left %v behind: %v", left, err)
	}
}

// processesWith lists the processes that have a variable in their environment: what a process starts inherits it.
func processesWith(t *testing.T, variable string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(files) == 0 {
		t.Fatalf("reading /proc: %v", err)
	}
	var found []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil || !strings.Contains("\x00"+string(text), "\x00"+variable+"\x00") {
			continue // gone, or not ours to read
		}
		name, err := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		if err == nil && len(name) > 0 { // a dead one that nobody has waited for yet has no name
			found = append(found, strings.ReplaceAll(string(name), "\x00", " "))
		}
	}
	return found
}

// piped lets the output go to a pipe.
func piped(t *testing.T) func(*exec.Cmd) (io.Reader, []io.Closer) {
	t.Helper()
	return func(cmd *exec.Cmd) (io.Reader, []io.Closer) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() }) // only read
		cmd.Stdout, cmd.Stderr = w, w
		return r, []io.Closer{w}
	}
}

// TestDemo runs what `make run` runs.
func TestDemo(t *testing.T) {
	dir := stage(t)
	t.Run("piped", func(t *testing.T) { testPiped(t, dir) })
	t.Run("terminal", func(t *testing.T) { testTerminal(t, dir) })
	t.Run("ctrlCTwice", func(t *testing.T) { testTwice(t, dir) })
	t.Run("ctrlCBeforeItIsReady", func(t *testing.T) { testEarly(t, dir) })
	t.Run("itsTimeIsOver", func(t *testing.T) { testTime(t, dir) })
	t.Run("itsReaderGoes", func(t *testing.T) { testReaderGoes(t, dir) })
	t.Run("memberThatCannotStart", func(t *testing.T) { testBroken(t, dir) })
}

// testPiped sees all that has to be seen, does all that it tells to do, and kills a plugin, while another program has the
// usual port.
func testPiped(t *testing.T, dir string) {
	t.Helper()
	occupied, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", wanted))
	if err == nil {
		defer occupied.Close() //nolint:errcheck // nobody connects
	} else if !errors.Is(err, syscall.EADDRINUSE) { // another program has it already, which does as well
		t.Fatal(err)
	}
	p := launch(t, dir, piped(t))
	p.await("that the port is taken", `broker  port 9876 is taken by another program`)
	p.await("its broker", `broker  embedded in m1 at 127\.0\.0\.1:\d+, data \S.*$`)
	first := p.await("the first order", `handled A-\d+, the first order, (\d+\.\d)s after the start$`)
	if took, err := strconv.ParseFloat(first[1], 64); err != nil || took > 60 { // under 3 where nobody else works
		t.Errorf("the first order came after %s s", first[1])
	}
	p.await("a rebalance", `member  m2 joined: rebalance, 4 queues moved, gap \d+\.\ds$`)
	retried := p.await("a retry", `retry   (A-\d+) attempt 1 at m\d "db timeout", again in 1s$`)
	p.await("a retry that is handled", `handled `+retried[1]+` attempt 2 at m\d$`)
	p.await("a dead letter with its trace", `dead    A-\d+ attempt 3 "no such customer" → trace [0-9a-f]{32}$`)
	p.await("both members at work", `^ m1 +Orders [0-9,-]+ +[1-9]\d*/s .*orders ok.*\n m2 +Orders [0-9,-]+ +[1-9]\d*/s .*orders ok`)
	p.await("what to type next", `^  The config is configs/quickstart\.yaml, the logs are in \S+\. Ctrl-C drains`)
	hints := regexp.MustCompile(`(?m)^ {6}(\S.*)$`).FindAllStringSubmatch(p.output(), -1)
	if len(hints) != 6 {
		t.Errorf("the demo names %d things to type, want 6: %q", len(hints), hints)
	}
	for _, h := range hints {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", h[1])
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil || len(out) == 0 && !strings.HasPrefix(h[1], "kill") {
			t.Errorf("what the demo says to type does not work: %s: %v\n%s", h[1], err, out)
		}
	}
	p.await("the own order", `yours   MINE-1 handled, attempt 1 at m\d$`)
	p.await("that the killed plugin is there again", `(?s)orders 0\.1\.0 ready .*orders 0\.1\.0 ready .*orders 0\.1\.0 ready`)
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.ends(exitcode.OK)
	p.noFiles()
	text := p.output()
	if !regexp.MustCompile(`(?m)drained \d+ in flight in \d+\.\ds · offsets confirmed 8/8 · exit 0\n sent [1-9][\d,]*  handled [1-9][\d,]*  retried [1-9]\d*  dead [1-9]\d*  waiting 0  lost 0  duplicates \d+$`).MatchString(text) {
		t.Errorf("the demo does not sum up:\n%s", text)
	}
	if strings.ContainsAny(text, "\x1b\r") {
		t.Errorf("piped output has control sequences:\n%q", text)
	}
}

// onTerminal gives the demo a terminal of its own, where Ctrl-C is a key.
func onTerminal(t *testing.T, width, height int) (set func(*exec.Cmd) (io.Reader, []io.Closer), keys *os.File) {
	t.Helper()
	master, slave := openTerminal(t, width, height)
	t.Cleanup(func() { _ = master.Close() }) // nobody is at the other end
	return func(cmd *exec.Cmd) (io.Reader, []io.Closer) {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		return master, []io.Closer{slave}
	}, master
}

const ctrlC = "\x03"

// testTerminal looks at the picture as a terminal shows it, and ends with Ctrl-C.
func testTerminal(t *testing.T, dir string) {
	t.Helper()
	const width, height = 58, 30
	set, keys := onTerminal(t, width, height)
	p := launch(t, dir, set, "-rate", "100")
	p.await("a rebalance", `m2 joined: rebalance`)
	p.await("both members", ` m2 +Orders [0-9,-]+ +[1-9]`)
	if _, err := keys.WriteString(ctrlC); err != nil {
		t.Fatal(err)
	}
	p.ends(exitcode.OK)
	p.noFiles()
	term := newTerminal(width, height)
	_, _ = term.Write([]byte(p.output())) // never fails
	text := term.text()
	pictures := regexp.MustCompile(`(?m)^ MEMBER .*\n m1 .*\n m2 .*\n handled \d(.|\n )*  duplicates 0$`).FindAllString(text, -1)
	if len(pictures) != 1 || strings.Count(text, "MEMBER") != 1 {
		t.Errorf("the terminal shows %d pictures, want the last one only:\n%s", len(pictures), text)
	}
	if !strings.Contains(p.output(), "\x1b[") {
		t.Error("the picture was never redrawn in place")
	}
	if !regexp.MustCompile(`exit\s+0\n +sent \d`).MatchString(text) {
		t.Errorf("the demo does not sum up:\n%s", text)
	}
}

// testTwice presses Ctrl-C again while the demo drains.
func testTwice(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "configs/quickstart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	patient := strings.Replace(string(text), "delay: 1s", "delay: 1m", 1)
	if patient == string(text) {
		t.Fatal("the config has no delay to change")
	}
	write(t, filepath.Join(dir, "configs/patient.yaml"), patient)
	set, keys := onTerminal(t, 100, 40)
	p := launch(t, dir, set, "-config", "configs/patient.yaml")
	p.await("a retry", `A-\d+ attempt 1 at m\d "db timeout"`) // the drain waits for it: long enough for a slow machine's second Ctrl-C
	for i, sign := range []string{"draining; Ctrl-C again", "nothing was summed up"} {
		if _, err := keys.WriteString(ctrlC); err != nil {
			t.Fatal(err)
		}
		p.await(fmt.Sprintf("what Ctrl-C %d does", i+1), sign)
	}
	p.ends(exitcode.Signaled(int(syscall.SIGINT)))
	p.noFiles()
}

// testEarly interrupts the start.
func testEarly(t *testing.T, dir string) {
	t.Helper()
	p := launch(t, dir, piped(t))
	p.await("its broker", `broker  embedded`)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.ends(exitcode.OK)
	p.noFiles()
}

// testTime lets the demo end by itself.
func testTime(t *testing.T, dir string) {
	t.Helper()
	p := launch(t, dir, piped(t), "-for", "1s")
	p.await("a clean end", `offsets confirmed \d/\d · exit 0$`)
	p.ends(exitcode.OK)
	p.noFiles()
}

// testReaderGoes closes the pipe that the demo writes to, as `make run | head` does.
func testReaderGoes(t *testing.T, dir string) {
	t.Helper()
	p := launch(t, dir, func(cmd *exec.Cmd) (io.Reader, []io.Closer) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout = w
		return &oneLine{in: r}, []io.Closer{w}
	})
	p.ends(exitcode.OK)
	p.noFiles()
}

// oneLine reads a line and closes.
type oneLine struct {
	in   *os.File
	read bool
}

func (o *oneLine) Read(b []byte) (int, error) {
	if o.read {
		return 0, io.EOF
	}
	o.read = true
	line, err := bufio.NewReader(o.in).ReadString('\n')
	return copy(b, line), errors.Join(err, o.in.Close())
}

// testBroken runs a config that streamd refuses: the demo says what it says, and keeps and names the logs.
func testBroken(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "configs/quickstart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "configs/broken.yaml"), string(text)+"no_such_key: 1\n")
	p := launch(t, dir, piped(t), "-config", "configs/broken.yaml")
	p.ends(exitcode.Runtime)
	p.await("what is wrong", `broken\.yaml:\d+:\d+: .*no_such_key`)
	kept := p.await("where the logs are", `^The members' logs are kept: (\S+)\*\.log$`)
	log, err := os.ReadFile(kept[1] + "m1.log")
	if err != nil || !strings.Contains(string(log), "no_such_key") {
		t.Errorf("the kept log: %v\n%s", err, log)
	}
}

// TestRun_tellsWhatIsMissing starts nothing.
func TestRun_tellsWhatIsMissing(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	good := Options{Rate: 1, Bin: empty, Config: "demo.go"}
	for name, c := range map[string]struct {
		change func(*Options)
		code   int
		text   string
	}{
		"binaries": {func(*Options) {}, exitcode.Environment, "run `make build` first"},
		"config":   {func(o *Options) { o.Config = "none.yaml" }, exitcode.Environment, "run this in the repository's folder"},
		"rate":     {func(o *Options) { o.Rate = 0 }, exitcode.Usage, "write 1 to 2000"},
	} {
		o := good
		c.change(&o)
		err := Run(o, os.Stdout, nil)
		if err == nil || exitcode.Of(err) != c.code || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v (%d)", name, err, exitcode.Of(err))
		}
	}
}

// TestFreeAddress takes the next one.
func TestFreeAddress(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nobody connects
	port := l.Addr().(*net.TCPAddr).Port
	address, usual, err := freeAddress(t.Context(), port)
	if err != nil || usual || address == l.Addr().String() {
		t.Errorf("beside a taken port: %s %t %v", address, usual, err)
	}
	if _, _, err := freeAddress(t.Context(), 1<<16); err == nil || exitcode.Of(err) != exitcode.Environment {
		t.Errorf("a port that does not exist: %v", err)
	}
}
