package interop

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamd/streamd/test/brokersuite"
	"github.com/streamd/streamd/test/interop/cluster"
)

// TestCodes lets the official clients and every command of mqadmin work on a real broker, notes which codes they send, and
// lets them do the same on the embedded broker: it supports each code, and what they report is the same.
func TestCodes(t *testing.T) {
	t.Parallel()
	genuine, embedded := realSite(t), embeddedSite(t)
	var both sync.WaitGroup
	for _, s := range []*site{genuine, embedded} {
		both.Go(func() { s.work(t) })
	}
	both.Wait()
	if t.Failed() {
		return
	}
	checkCodes(t, genuine.recording)
	for _, refused := range embedded.recording.refusals() {
		t.Errorf("the embedded broker does not support %d %v, which %s sent", refused.Code, refused.Code, refused.Client)
	}
	for _, sent := range genuine.recording.codes() {
		if _, ok := embedded.recording.sent[sent]; !ok {
			t.Errorf("%s sent %d %v to the real broker, but not to the embedded one", sent.Client, sent.Code, sent.Code)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(genuine.outcomes)) {
		if want, got := genuine.outcomes[name], embedded.outcomes[name]; want != got && otherwise()[name] == "" {
			t.Errorf("%s\n  real     %s\n  embedded %s", name, want, got)
		}
	}
}

// checkCodes compares what was recorded with the list in testdata, so that a new version of a client shows.
func checkCodes(t *testing.T, r *recording) {
	t.Helper()
	var text strings.Builder
	for _, s := range r.codes() {
		fmt.Fprintf(&text, "%s %d %v\n", s.Client, s.Code, s.Code)
	}
	path := filepath.Join("testdata", "codes.txt")
	if *updateSuite {
		if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if !strings.Contains("\n"+string(want), "\n"+line) {
			t.Errorf("a code that testdata/codes.txt does not list (go test -run TestCodes -args -update writes it anew): %s", line)
		}
	}
}

// site is a RocketMQ, real or embedded, with proxies before it and tools that go through them.
type site struct {
	dir        string // where the tools run
	name       string
	nameServer string // as the clients reach it
	broker     string // as routes name it
	recording  *recording
	tools      *cluster.Cluster
	goPeer     string
	mu         sync.Mutex // of outcomes
	outcomes   map[string]string
}

// codeSettings are those of the suite; transactions are asked for soon.
func realSite(t *testing.T) *site {
	t.Helper()
	settings := brokersuite.BrokerSettings()
	settings["brokerIP1"], settings["bindAddress"] = "127.0.0.2", "127.0.0.1"
	p := newPlace(t, cluster.Options{Broker: settings})
	return newSite(t, "real", p.Addr, p.Brokers[0].Addr)
}

func embeddedSite(t *testing.T) *site {
	t.Helper()
	port, err := cluster.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	startEmbedded(t, address, otherLoopback(address, 2), "--data", t.TempDir())
	return newSite(t, "embedded", address, address)
}

// startEmbedded starts "streamd broker" as a process.
func startEmbedded(t *testing.T, listen, advertise string, more ...string) *cluster.Process {
	t.Helper()
	args := append([]string{"broker", "--listen", listen, "--advertise", advertise, "--delay-levels", strings.Join(delayLevels(), ",")}, more...)
	b, err := cluster.Start("streamd broker", exec.Command(built(t, shared.streamd), args...)) // ended by the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.Kill()
		if t.Failed() {
			lines := b.Lines()
			t.Logf("the end of the embedded broker:\n%s", strings.Join(lines[max(0, len(lines)-25):], "\n"))
		}
	})
	waitLine(t, b, func(l string) bool { return strings.Contains(l, listen) })
	return b
}

func newSite(t *testing.T, name, nameServer, broker string) *site {
	t.Helper()
	s := &site{name: name, recording: newRecording(), outcomes: map[string]string{}, goPeer: built(t, shared.goPeer)}
	s.broker = s.recording.before(t, otherLoopback(broker, 2), broker)
	s.nameServer = s.recording.before(t, "127.0.0.1:0", nameServer)
	if nameServer == broker {
		s.nameServer = s.broker
	}
	s.dir = t.TempDir()
	tools, err := cluster.Tools(t.Context(), s.dir, s.nameServer)
	if err != nil {
		t.Fatal(err)
	}
	s.tools = tools
	return s
}

// work runs everything; what came of it is in outcomes afterwards.
func (s *site) work(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	admin, err := s.tools.RunAdmin(ctx)
	if err != nil {
		t.Error(err)
		return
	}
	defer admin.Close()
	for _, topic := range []string{"Work", "Workorder", "Worktrans", "Worktime", "Workreq"} {
		if err := admin.CreateTopic(ctx, topic, 2); err != nil {
			t.Error(err)
			return
		}
	}
	var peers sync.WaitGroup
	peers.Go(func() {
		s.peer(ctx, t, "java", func() (*cluster.Process, error) { return s.tools.Java(ctx, "Workout", s.nameServer, "Work") })
	})
	peers.Go(func() {
		s.peer(ctx, t, "go", func() (*cluster.Process, error) {
			return cluster.Start("gopeer", exec.Command(s.goPeer, "workout", s.nameServer, s.broker, "GoWork")) // ended below
		})
	})
	peers.Wait()
	s.commands(t, ctx, admin)
}

// peer runs a client's workout and keeps its outcomes.
func (s *site) peer(ctx context.Context, t *testing.T, name string, start func() (*cluster.Process, error)) {
	p, err := start()
	if err != nil {
		t.Error(err)
		return
	}
	defer p.Kill()
	if _, err := p.WaitLine(ctx, func(l string) bool { return l == "#done" }); err != nil {
		t.Errorf("%s on the %s broker: %v", name, s.name, err)
	}
	for _, l := range p.Lines() {
		if rest, ok := strings.CutPrefix(l, "outcome "); ok {
			piece, text, _ := strings.Cut(rest, ": ")
			t.Logf("%s: %s %s: %s", s.name, name, piece, text)
			s.came(name+" "+piece, text)
		}
	}
}

func (s *site) came(of, outcome string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcomes[of] = outcome
}
