package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Java starts one of the programs in test/interop/java against this cluster's version.
func (c *Cluster) Java(ctx context.Context, class string, args ...string) (*Process, error) {
	dir, err := classes(ctx, c.Version)
	if err != nil {
		return nil, err
	}
	cp := dir + string(os.PathListSeparator) + filepath.Join(c.lib, "*")
	all := slices.Concat([]string{
		"-Xmx256m", "-XX:+UseSerialGC", "-Duser.home=" + c.dir, "-Drocketmq.home.dir=" + c.toolsHome(), "-Drocketmq.client.logUseSlf4j=false",
		"-Drocketmq.client.logRoot=" + filepath.Join(c.dir, "logs"), "-Dcom.rocketmq.remoting.client.connect.timeout=30000",
	}, c.jvm, []string{"-cp", cp, class}, args)
	cmd := exec.Command("java", all...) //nolint:noctx // ended by its owner, not by a context
	cmd.Dir = c.dir                     // some mqadmin commands leave files where they are
	return spawn(class, cmd)
}

// JavaReady starts a program that prints "#ready", and starts it again when that fails: a Java client fails its start when its
// first request has no answer within 3 s, or comes too early for its connection, and whoever runs it starts it again.
func (c *Cluster) JavaReady(ctx context.Context, class string, args ...string) (*Process, error) {
	for try := 1; ; try++ {
		p, err := c.Java(ctx, class, args...)
		if err != nil {
			return nil, err
		}
		said, err := p.started(ctx)
		if err == nil && strings.HasPrefix(said, "#ready") {
			return p, nil
		}
		p.Kill()
		if try == 3 {
			return nil, errors.Join(fmt.Errorf("%s does not start: %q; it said:\n%s", class, said, strings.Join(p.Lines(), "\n")), err)
		}
	}
}

// started waits until a Java program says that it is ready, or why it is not.
func (p *Process) started(ctx context.Context) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return p.WaitLine(ctx, func(l string) bool {
		return strings.HasPrefix(l, "#ready") || strings.HasPrefix(l, "Exception in thread")
	})
}

// Admin is a running mqadmin.
type Admin struct {
	p  *Process
	ns string
	mu sync.Mutex
}

// Admin starts mqadmin for the cluster; it ends with the test.
func (c *Cluster) Admin(tb testing.TB) *Admin {
	tb.Helper()
	a, err := c.RunAdmin(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(a.p.Kill)
	return a
}

// RunAdmin starts mqadmin; the caller ends it.
func (c *Cluster) RunAdmin(ctx context.Context) (*Admin, error) {
	p, err := c.Java(ctx, "Admin")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := p.WaitLine(ctx, func(l string) bool { return l == "#ready" }); err != nil {
		p.Kill()
		return nil, err
	}
	return &Admin{p: p, ns: c.Addr}, nil
}

// Close ends mqadmin.
func (a *Admin) Close() { a.p.Kill() }

// patience is how long a JVM may take for what it has to do: a slow machine must not fail a test.
const patience = 3 * time.Minute

// late is how the tool says that it gave up: it waits some seconds for an answer, and has no option for more.
var late = regexp.MustCompile(`Remoting(Timeout|Connect|SendRequest|TooMuchRequest)Exception`)

// Run executes one mqadmin command (the -n option is added) and returns what it printed. One that got no answer in time is
// executed again, twice at most.
func (a *Admin) Run(ctx context.Context, args ...string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for try := 1; ; try++ {
		out, err := a.once(ctx, args)
		if err != nil || try == 3 || !late.MatchString(out) {
			return out, err
		}
	}
}

func (a *Admin) once(ctx context.Context, args []string) (string, error) {
	from := a.p.count()
	words := append([]string{args[0], "-n", a.ns}, args[1:]...)
	if err := a.p.Write(strings.Join(words, "\t")); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	n := 0
	if _, err := a.p.WaitLine(ctx, func(l string) bool { n++; return l == "#done" && n > from }); err != nil {
		return "", fmt.Errorf("mqadmin %s: %w", strings.Join(args, " "), err)
	}
	lines := a.p.Lines()[from:]
	return strings.Join(lines, "\n"), nil
}

// CreateTopic makes a topic with n queues on each broker. A broker that has just started registers a moment after it says
// that it is up, so this is tried for a while.
func (a *Admin) CreateTopic(ctx context.Context, topic string, queues int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		out, err := a.Run(ctx, "updateTopic", "-c", "DefaultCluster", "-t", topic, "-r", fmt.Sprint(queues), "-w", fmt.Sprint(queues))
		if err == nil && strings.Contains(out, "success") {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("creating topic %s: %s", topic, out), err)
		}
	}
}
