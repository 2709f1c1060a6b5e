package interop

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/test/interop/cluster"
)

// TestLedger_embeddedBroker kills the embedded broker under load, with streamd, Java and Go clients on it that produce and
// consume. Whatever it acknowledged to any of them is consumed by all three groups. An acknowledgment under flush async means
// that the operating system has the message, which the end of the process does not take away (docs/embedded-broker.md: only a
// loss of power takes the last 0.5 s); so nothing may be lost by these kills either way.
func TestLedger_embeddedBroker(t *testing.T) {
	for flush, kills := range map[string]int{"sync": 5, "async": 3} {
		t.Run(flush, func(t *testing.T) {
			t.Parallel()
			ledgerEmbedded(t, flush, kills)
		})
	}
}

func ledgerEmbedded(t *testing.T, flush string, kills int) {
	port, err := cluster.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	address, data := fmt.Sprintf("127.0.0.1:%d", port), t.TempDir()
	start := func() *cluster.Process {
		return startEmbedded(t, address, address, "--data", data, "--flush", flush)
	}
	broker := start()
	tools, err := cluster.Tools(t.Context(), t.TempDir(), address, "-XX:TieredStopAtLevel=1")
	if err != nil {
		t.Fatal(err)
	}
	l := newLoop(t, &place{Cluster: tools}, "Embedded"+flush, 1)
	l.ready(l.member(1))
	clients := []*cluster.Process{l.javaClient(), l.goClient()}
	l.feeders = []*cluster.Process{l.p.javaReady(t, "Feed", l.topic(), "java", "50"), l.p.goPeer(t, "feed", l.topic(), "go", "50")}
	for range kills {
		l.feeding()
		l.killBroker("embedded broker", broker.Kill)
		broker = start()
		before := len(l.entries())
		until(t, 90*time.Second, "work goes on", func() (bool, string) { n := len(l.entries()); return n > before+100, fmt.Sprint(n - before) })
	}
	l.feeding()
	a := l.check()
	for _, f := range l.feeders {
		t.Logf("%s was told of %d messages as stored", f.Name, len(l.fed(f)))
	}
	for _, c := range clients {
		l.gotAll(c)
	}
	t.Logf("flush %s, %d kills: %d acknowledged messages lost; what may be lost: none", flush, kills, len(a.Lost))
	stopClean(t, l.members[1])
}

// feeding waits until each of the feeders has some messages acknowledged anew: it is at work, and has found the broker again.
func (l *loop) feeding() {
	l.t.Helper()
	before := make([]int, len(l.feeders))
	for i, f := range l.feeders {
		before[i] = len(acknowledged(f))
	}
	until(l.t, 2*time.Minute, "the official clients have messages acknowledged", func() (bool, string) {
		n := make([]int, len(l.feeders))
		for i, f := range l.feeders {
			n[i] = len(acknowledged(f)) - before[i]
		}
		return slices.Min(n) >= 20, fmt.Sprint(n)
	})
}

// acknowledged lists the bodies that a feeder was told of as stored.
func acknowledged(f *cluster.Process) (bodies []string) {
	for _, line := range f.Lines() {
		if body, ok := strings.CutPrefix(line, "sent "); ok {
			bodies = append(bodies, body)
		}
	}
	return bodies
}

// fed ends a feeder, and lists what was acknowledged.
func (l *loop) fed(f *cluster.Process) []string {
	l.t.Helper()
	select {
	case <-f.Done():
	default:
		if err := f.Write(""); err != nil {
			l.t.Fatalf("ending %s: %v", f.Name, err)
		}
		waitLine(l.t, f, line("#done"))
		<-f.Done()
	}
	return acknowledged(f)
}

// toolsOf is the official tools for a RocketMQ that runs already.
func toolsOf(t *testing.T, nameServer string) *place {
	t.Helper()
	c, err := cluster.Tools(t.Context(), t.TempDir(), nameServer)
	if err != nil {
		t.Fatal(err)
	}
	return &place{c, c.Admin(t)}
}

func (l *loop) javaClient() *cluster.Process {
	l.t.Helper()
	return l.p.javaReady(l.t, "Consume", "java-"+l.group(), l.topic(), "*")
}

func (l *loop) goClient() *cluster.Process {
	l.t.Helper()
	p, err := cluster.Start("gopeer", exec.Command(built(l.t, shared.goPeer), "consume", l.p.Addr, "go-"+l.group(), l.topic(), "*")) // ended by the test
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(p.Kill)
	return p
}

// gotAll waits until a client has got whatever was acknowledged.
func (l *loop) gotAll(c *cluster.Process) {
	l.t.Helper()
	produced := l.sent()
	until(l.t, 2*time.Minute, c.Name+" got all that was acknowledged", func() (bool, string) {
		seen := map[string]bool{}
		for _, line := range c.Lines() {
			// got ID WORD N/M ATTEMPT QUEUE OFFSET
			if w := strings.Fields(line); len(w) == 7 && w[0] == "got" {
				seen[w[2]+" "+w[3]] = true
			}
		}
		left := slices.DeleteFunc(slices.Clone(produced), func(b string) bool { return seen[b] })
		return len(left) == 0, fmt.Sprintf("%d of %d left: %.200v", len(left), len(produced), left)
	})
}
