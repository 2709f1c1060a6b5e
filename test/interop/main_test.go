package interop

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/streamd/streamd/test/interop/cluster"
)

// house is what the tests of this package share: starting it takes many seconds. It is set up by TestMain and by the first
// test that asks.
type house struct {
	dir  string
	main func() (*place, error) // 5.3.3

	goPeer, streamd, ledger func() (string, error) // paths of binaries
}

// place is a cluster with an mqadmin.
type place struct {
	*cluster.Cluster
	admin *cluster.Admin
}

// shared is read by tests only.
var shared *house

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "interop")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var started []*place
	shared = &house{dir: dir}
	shared.main = sync.OnceValues(func() (*place, error) {
		p, err := open(context.Background(), cluster.Options{Dir: filepath.Join(dir, "main"), Broker: quickRetries()})
		if p != nil {
			started = append(started, p)
		}
		return p, err
	})
	shared.goPeer = binary(dir, "gopeer", "./gopeer")
	shared.ledger = binary(dir, "ledger", "./plugins/ledger")
	shared.streamd = binary(dir, "streamd", "../../cmd/streamd")
	code := m.Run()
	for _, p := range started {
		p.close()
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// quickRetries are broker settings under which a retry takes a second: level 3 is the first one's (Java's 3 + retries so far).
// Producers are asked about open transactions soon, and there is a topic for RocketMQ's own trace.
// What ended a transaction is noted at once: by default 5.x takes 3 s, and may ask again meanwhile.
func quickRetries() map[string]string {
	return map[string]string{
		"messageDelayLevel": strings.Join(delayLevels(), " "), "transactionCheckInterval": "3000", "transactionOpBatchInterval": "100", "traceTopicEnable": "true",
		"transactionTimeOut": "12000", // a slow machine ends a transaction within it: one that has ended is not asked about
	}
}

func delayLevels() []string {
	return []string{"1s", "1s", "1s", "1s", "1s", "1s", "1s", "2s", "3s", "4s", "5s", "6s", "7s", "8s", "9s", "10s", "11s", "12s"}
}

func open(ctx context.Context, o cluster.Options) (*place, error) {
	if _, err := cluster.Lib(ctx, cmp.Or(o.Version, cluster.Main)); err != nil { // which may take longer than a start
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 6*time.Minute)
	defer cancel()
	c, err := cluster.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	admin, err := c.RunAdmin(ctx)
	if err != nil {
		c.Close()
		return nil, err
	}
	return &place{c, admin}, nil
}

func (p *place) close() {
	p.admin.Close()
	p.Close()
}

// main5 is the shared cluster of the main version. Tests must not kill its parts.
func mainCluster(t *testing.T) *place {
	t.Helper()
	p, err := shared.main()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// newPlace is a cluster for one test.
func newPlace(t *testing.T, o cluster.Options) *place {
	t.Helper()
	o.Dir = t.TempDir()
	p, err := open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p
}

// binary builds a program once. The module's own folder is the working directory of the test.
func binary(dir, name, pkg string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		path := filepath.Join(dir, name)
		cmd := exec.Command("go", "build", "-o", path, pkg) // ends by itself
		if strings.HasPrefix(pkg, "../..") {
			cmd.Dir, cmd.Args[4] = cluster.Root(), "./"+strings.TrimPrefix(pkg, "../../")
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("building %s: %w\n%s", name, err, out)
		}
		return path, nil
	})
}

func built(t *testing.T, f func() (string, error)) string {
	t.Helper()
	path, err := f()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// within is the test's context with a limit.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// patience is the least that waiting for what has to come gets: a slow machine must not fail a test.
const patience = 3 * time.Minute

// until polls for what no event tells: state of a broker, of a member, of a file. d is how long it may take, or patience.
func until(t *testing.T, d time.Duration, what string, ok func() (done bool, state string)) {
	t.Helper()
	d = max(d, patience)
	ctx := within(t, d)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		done, state := ok()
		if done {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within %s: %s; last: %s", d, what, state)
		}
	}
}
