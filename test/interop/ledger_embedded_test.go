package interop

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/test/interop/cluster"
	"github.com/streamd/streamd/test/interop/ledger"
)

// TestLedger_embeddedBroker kills the embedded broker under load, with streamd, a Java and a Go client on it. Whatever it
// acknowledged is consumed by all three groups. An acknowledgment under flush async means that the operating system has the
// message, which the end of the process does not take away; so nothing may be lost by these kills either way.
func TestLedger_embeddedBroker(t *testing.T) {
	for _, flush := range []string{"sync", "async"} {
		t.Run(flush, func(t *testing.T) { ledgerEmbedded(t, flush) })
	}
}

func ledgerEmbedded(t *testing.T, flush string) {
	port, err := cluster.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address, data := fmt.Sprintf("127.0.0.1:%d", port), t.TempDir()
	start := func() *cluster.Process {
		return startEmbedded(t, address, address, "--data", data, "--flush", flush)
	}
	broker := start()
	l := newLoop(t, toolsOf(t, address), "Embedded"+flush, 1)
	l.ready(l.member(1))
	clients := []*cluster.Process{l.javaClient(), l.goClient()}
	for range 3 {
		l.busy("any", 3, func(ledger.Entry) bool { return true })
		at := time.Now()
		broker.Kill()
		l.kills = append(l.kills, ledger.Kill{What: "embedded broker", At: at.UnixNano(), Gone: at.UnixNano()})
		broker = start()
		before := len(l.entries())
		until(t, 90*time.Second, "work goes on", func() (bool, string) { n := len(l.entries()); return n > before+100, fmt.Sprint(n - before) })
	}
	l.check()
	for _, c := range clients {
		l.gotAll(c)
	}
	stopClean(t, l.members[1])
}

// toolsOf is the official tools for a RocketMQ that runs already.
func toolsOf(t *testing.T, nameServer string) *place {
	t.Helper()
	c, err := cluster.Tools(within(t, 5*time.Minute), t.TempDir(), nameServer)
	if err != nil {
		t.Fatal(err)
	}
	return &place{c, c.Admin(t)}
}

func (l *loop) javaClient() *cluster.Process {
	l.t.Helper()
	p, err := l.p.Java(l.t.Context(), "Consume", l.p.Addr, "java-"+l.group(), l.topic(), "*")
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(p.Kill)
	return p
}

func (l *loop) goClient() *cluster.Process {
	l.t.Helper()
	p, err := cluster.Start("gopeer", exec.Command(built(l.t, shared.goPeer), "consume", l.p.Addr, "go-"+l.group(), l.topic(), "*")) //nolint:noctx // ended by the test
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
