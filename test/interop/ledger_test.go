package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/test/interop/cluster"
	"github.com/streamd/streamd/test/interop/ledger"
)

// The flags of the ledger loops.
var (
	soak = flag.Bool("soak", false, "run the ledger loops without a bound, until a fault or Ctrl-C")
	seed = flag.Uint64("seed", 0, "seed of the ledger loops; 0 = a new one")
)

// TestLedger runs the loops of kill -9 under load and the hand-over in peace; with -soak again and again.
func TestLedger(t *testing.T) {
	for again := true; again; again = *soak && !t.Failed() {
		t.Run("pluginKills", ledgerPluginKills)
		t.Run("streamdKills", ledgerStreamdKills)
		t.Run("streamdKillsAlone", ledgerStreamdKillsAlone)
		t.Run("handOver", ledgerHandOver)
		t.Run("brokerKills", ledgerBrokerKills)
	}
}

const ledgerQueues = 4

// loop is a ledger loop: a load of messages, members that handle them, and kills.
type loop struct {
	t       *testing.T
	p       *place
	name    string
	dir     string
	random  *rand.Rand
	client  *rocketmq.Client
	plugins int                     // processes of the plugin in each member
	keys    string                  // further keys of the stream
	rate    int                     // messages a second of the load
	seconds int                     // length of one producer's load
	words   func(*rand.Rand) string // draws what becomes of a message
	least   int                     // deliveries that a kill has to find in flight

	producers []*cluster.Process
	bodies    [][]string         // by producer
	feeders   []*cluster.Process // official clients that produce too
	members   map[int]*cluster.Process
	kills     []ledger.Kill
	ledger    ledger.Reader
}

func newLoop(t *testing.T, p *place, name string, plugins int) *loop {
	t.Helper()
	return newLoopOf(t, p, name, plugins, ledgerQueues)
}

// newLoopOf makes a loop whose topic has so many queues on each broker.
func newLoopOf(t *testing.T, p *place, name string, plugins, queues int) *loop {
	t.Helper()
	n := *seed
	if n == 0 {
		n = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d (again with: -args -seed=%d)", n, n)
	l := &loop{
		t: t, p: p, name: fmt.Sprintf("%s%d", name, time.Now().UnixNano()%1e6), dir: t.TempDir(), random: rand.New(rand.NewPCG(n, 1)), plugins: plugins,
		client: newClient(t, p.Addr), members: map[int]*cluster.Process{}, rate: 200, seconds: 60, words: anyWord, least: 3,
		keys: "    retry: {levels: [" + strings.Join(delayLevels(), ", ") + "]}",
	}
	l.makeTopic(queues)
	// A broker that has registered with the name server only a moment ago may not have been told of the topic.
	until(t, time.Minute, "the topic is on every broker", func() (bool, string) {
		qs, err := l.client.Queues(within(t, 20*time.Second), l.topic())
		if len(qs) == queues*max(1, len(p.Brokers)) {
			return true, ""
		}
		l.makeTopic(queues)
		return false, fmt.Sprint(qs, err)
	})
	return l
}

// makeTopic makes the topic by mqadmin, or by the client where there is none.
func (l *loop) makeTopic(queues int) {
	l.t.Helper()
	if l.p.admin != nil {
		l.p.topic(l.t, l.topic(), queues)
		return
	}
	if err := l.client.CreateTopic(within(l.t, time.Minute), l.topic(), int32(queues), 0); err != nil {
		l.t.Fatal(err)
	}
}

func (l *loop) topic() string { return "Ledger" + l.name }
func (l *loop) group() string { return "ledger-" + strings.ToLower(l.name) }
func (l *loop) file() string  { return filepath.Join(l.dir, "ledger") }

const ledgerConfig = `
brokers:
  - {name: main, name_servers: [%q]}
plugins:
  - {name: ledger, command: [%q], instances: %d}
handlers:
  - {name: ledger, plugin: ledger, config: {file: %q, slow: 3ms}}
streams:
  - name: ledger
    group: %s
    subscribe: [{topic: %s}]
    start_from: first
    concurrency: 40
%s
state_dir: %q
admin: {listen: ""}
log: {format: json}
`

// member starts streamd number n, on the state folder that it had before.
func (l *loop) member(n int) *cluster.Process {
	l.t.Helper()
	config := filepath.Join(l.dir, fmt.Sprintf("streamd-%d.yaml", n))
	text := fmt.Sprintf(ledgerConfig, l.p.Addr, built(l.t, shared.ledger), l.plugins, l.file(), l.group(), l.topic(), l.keys, filepath.Join(l.dir, fmt.Sprint("state-", n)))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	cmd := exec.Command(built(l.t, shared.streamd), "run", "-c", config) // ended by the test
	m, err := cluster.Start(fmt.Sprint("streamd ", n), cmd)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		m.Kill()
		if l.t.Failed() {
			lines := m.Lines()
			l.t.Logf("the end of %s (%d):\n%s", m.Name, m.PID(), strings.Join(lines[max(0, len(lines)-25):], "\n"))
		}
	})
	l.members[n] = m
	return m
}

// ready waits until a member has its queues and its plugin.
func (l *loop) ready(m *cluster.Process) {
	l.t.Helper()
	waitLine(l.t, m, func(s string) bool { return strings.Contains(s, `"ready: `) })
}

// load keeps messages coming: mostly handled in a few milliseconds, some failing once, some rejected, some slow. It starts
// a producer when there is none or the last one is through.
func (l *loop) load() {
	l.t.Helper()
	if n := len(l.producers); n > 0 {
		select {
		case <-l.producers[n-1].Done():
		default:
			return
		}
	}
	n, round := l.rate*l.seconds, len(l.producers)
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = fmt.Sprintf("%s %d/%d", l.words(l.random), round, i)
	}
	file := filepath.Join(l.dir, fmt.Sprint("bodies-", round))
	if err := os.WriteFile(file, []byte(strings.Join(bodies, "\n")+"\n"), 0o600); err != nil {
		l.t.Fatal(err)
	}
	cmd := exec.Command(built(l.t, shared.streamd), "produce", "-n", l.p.Addr, "--topic", l.topic(), "--file", file, // ended by the test
		"--rate", fmt.Sprint(l.rate), "--in-flight", "8", "--retry-for", "90s", "-o", "json")
	p, err := cluster.Start(fmt.Sprint("producer ", round), cmd)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(p.Kill)
	l.producers, l.bodies = append(l.producers, p), append(l.bodies, bodies)
}

// anyWord draws what becomes of a message of a group without order.
func anyWord(random *rand.Rand) string {
	switch r := random.IntN(100); {
	case r < 5:
		return "fail-1"
	case r < 7:
		return "reject"
	case r < 20:
		return fmt.Sprintf("slow-%d", 50+random.IntN(250))
	default:
		return "ok"
	}
}

// sent ends the load and lists the bodies whose sends were acknowledged.
func (l *loop) sent() (bodies []string) {
	l.t.Helper()
	for round, p := range l.producers {
		select {
		case <-p.Done():
		default:
			if err := p.Stop(time.Minute); err != nil && p.Err() == nil {
				l.t.Fatal(err)
			}
		}
		for _, line := range p.Lines() {
			var one struct {
				N     int    `json:"n"`
				Error string `json:"error"`
			}
			if json.Unmarshal([]byte(line), &one) == nil && one.N > 0 && one.Error == "" {
				bodies = append(bodies, l.bodies[round][one.N-1])
			}
		}
	}
	for _, f := range l.feeders {
		bodies = append(bodies, l.fed(f)...)
	}
	return bodies
}

func (l *loop) entries() []ledger.Entry {
	l.t.Helper()
	e, err := l.ledger.Read(l.file())
	if err != nil {
		l.t.Fatal(err)
	}
	return e
}

// busy waits until deliveries that ok accepts are in flight, under load.
func (l *loop) busy(what string, least int, ok func(ledger.Entry) bool) {
	l.t.Helper()
	l.load()
	until(l.t, 90*time.Second, "work in flight: "+what, func() (bool, string) {
		l.load()
		e := l.entries()
		n := 0
		for _, d := range ledger.InFlight(e[max(0, len(e)-2000):]) {
			if ok(d) {
				n++
			}
		}
		return n >= least, fmt.Sprintf("%d in flight, %d entries", n, len(e))
	})
}

// catch stops the plugin processes that ok accepts deliveries of while they have some in hand: between a look at the ledger
// and a kill they might end them all. A stopped process can be killed. They are stopped first and looked at then: a look takes
// longer than a delivery, and so may a stop on a busy machine.
func (l *loop) catch(what string, ok func(ledger.Entry) bool) {
	l.t.Helper()
	until(l.t, 3*time.Minute, "work in flight: "+what, func() (bool, string) {
		l.load()
		l.signal(syscall.SIGSTOP, ok)
		l.standing(ok)
		e := l.entries()
		if slices.ContainsFunc(ledger.InFlight(e), ok) {
			return true, ""
		}
		l.signal(syscall.SIGCONT, ok)
		return false, fmt.Sprintf("none in flight, %d entries", len(e))
	})
}

// signal sends a signal to all processes that ok accepts deliveries of.
func (l *loop) signal(sig syscall.Signal, ok func(ledger.Entry) bool) {
	l.t.Helper()
	for pid := range l.handling(ok) {
		_ = syscall.Kill(pid, sig) // one that has ended has nothing in hand
	}
}

// standing waits until every thread of these processes stands still.
func (l *loop) standing(ok func(ledger.Entry) bool) {
	l.t.Helper()
	until(l.t, time.Minute, "the processes stand still", func() (bool, string) {
		for pid := range l.handling(ok) {
			threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
			if err != nil {
				return false, err.Error()
			}
			for _, path := range threads {
				text, err := os.ReadFile(path)
				if at := bytes.LastIndexByte(text, ')'); err == nil && at >= 0 && !slices.Contains([]byte("TtZX"), text[at+2]) {
					return false, string(text)
				}
			}
		}
		return true, ""
	})
}

// handling are the processes that ok accepts deliveries of.
func (l *loop) handling(ok func(ledger.Entry) bool) map[int]bool {
	l.t.Helper()
	pids := map[int]bool{}
	for _, e := range l.entries() {
		if !pids[e.PID] && ok(e) {
			pids[e.PID] = true
		}
	}
	return pids
}

// committed reads what the broker has stored for a group.
func committed(t *testing.T, c *rocketmq.Client, group, own string) map[string]int64 {
	t.Helper()
	ctx := within(t, patience)
	all := map[string]int64{}
	for _, topic := range []string{own, wire.RetryTopic(group)} {
		qs, err := c.Queues(ctx, topic)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range qs {
			offset, ok, err := c.Committed(ctx, group, q)
			if err != nil {
				t.Fatal(err)
			}
			if name := q.String(); ok && topic == own {
				all[name] = offset
			} else if ok {
				all[ledger.RetryQueue(q.Broker, q.ID)] = offset
			}
		}
	}
	return all
}

// gone waits until killed processes are gone, and notes the kill.
func (l *loop) gone(k ledger.Kill, pids ...int) {
	l.t.Helper()
	until(l.t, patience, fmt.Sprintf("processes %v are gone", pids), func() (bool, string) {
		left := slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
		return len(left) == 0, fmt.Sprint(left)
	})
	k.Gone = time.Now().UnixNano()
	l.kills = append(l.kills, k)
}

// dead reads the bodies in the group's dead-letter topic: all of them, or the error says why not.
func (l *loop) dead() (bodies []string, err error) {
	l.t.Helper()
	ctx := within(l.t, 30*time.Second)
	qs, err := l.client.Queues(ctx, wire.DLQTopic(l.group()))
	if errors.Is(err, rocketmq.ErrTopicNotFound) {
		return nil, nil // there is no such topic before the first dead letter
	}
	if err != nil {
		return nil, fmt.Errorf("looking for the dead letters: %w", err)
	}
	for _, q := range qs {
		ms, _, err := read(ctx, l.client, "ledger-audit", q, 0)
		if err != nil {
			return nil, fmt.Errorf("reading the dead letters in %s: %w", q, err)
		}
		for i := range ms {
			bodies = append(bodies, ms[i].Text)
		}
	}
	return bodies, nil
}

func rejected(body string) bool { return strings.HasPrefix(body, "reject") }

// slack is how many records may be answered in the plugins and on their way to the host at a kill: two full batches.
const slack = 64

// check waits until everything produced is handled or dead-lettered, and holds the ledger against the promises.
func (l *loop) check() *ledger.Audit {
	l.t.Helper()
	produced := l.sent()
	var left []string
	until(l.t, 3*time.Minute, fmt.Sprintf("%d messages are handled or dead-lettered", len(produced)), func() (bool, string) {
		handled := ledger.Handled(l.entries())
		left = slices.DeleteFunc(slices.Clone(produced), func(b string) bool { return handled[b] > 0 || rejected(b) })
		return len(left) == 0, fmt.Sprintf("%d left: %.300v", len(left), left)
	})
	rejects := len(slices.DeleteFunc(slices.Clone(produced), func(b string) bool { return !rejected(b) }))
	var dead []string
	until(l.t, time.Minute, fmt.Sprintf("%d dead letters", rejects), func() (bool, string) {
		var err error
		dead, err = l.dead()
		distinct := slices.Compact(slices.Sorted(slices.Values(dead)))
		return err == nil && len(distinct) >= rejects, fmt.Sprint(len(distinct), err)
	})
	entries := l.entries()
	a := ledger.Check(entries, produced, dead, l.kills, rejected)
	l.t.Logf("%d produced, %d dead-lettered, %d deliveries\n%s", len(produced), len(dead), len(entries)/2, a.Text(entries, l.kills))
	for _, fault := range a.Faults(entries, l.kills, slack) {
		l.t.Error(fault)
	}
	return a
}

// ledgerPluginKills kills plugin processes under load: nothing is lost, nothing burns, and only what was in flight in
// the process comes again. A plugin has five processes, so that no one's breaker opens (5 exits in 2 minutes).
func ledgerPluginKills(t *testing.T) {
	l := newLoop(t, mainCluster(t), "Plugin", 5)
	l.ready(l.member(1))
	for i := range 20 {
		pid := l.instance(i % l.plugins)
		l.catch(fmt.Sprint("plugin process ", pid), func(e ledger.Entry) bool { return e.PID == pid })
		k := ledger.Kill{What: fmt.Sprint("plugin ", pid), At: time.Now().UnixNano(), PID: pid}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		l.gone(k, pid)
	}
	if a := l.check(); len(a.Copies) > 0 {
		t.Errorf("stored twice: %v", a.Copies)
	}
	stopClean(t, l.members[1])
}

// instance waits until `group status` shows a plugin process in place i, and returns its pid.
func (l *loop) instance(i int) (pid int) {
	l.t.Helper()
	until(l.t, time.Minute, fmt.Sprintf("plugin process %d of %d is ready", i+1, l.plugins), func() (bool, string) {
		g, err := l.p.status(l.t, l.group())
		if err != nil || len(g.Members) != 1 || len(g.Members[0].Plugins) <= i {
			return false, fmt.Sprint(err, g.Members)
		}
		ours := g.Members[0].Plugins[:0:0]
		for _, p := range g.Members[0].Plugins {
			if p.Name == "ledger" {
				ours = append(ours, p)
			}
		}
		if len(ours) <= i || ours[i].State != "ready" {
			return false, fmt.Sprintf("%+v", ours)
		}
		pid = ours[i].PID
		return pid > 0, fmt.Sprintf("%+v", ours)
	})
	return pid
}

// ledgerStreamdKills kills one of two members under load and starts it again.
func ledgerStreamdKills(t *testing.T) {
	l := newLoop(t, mainCluster(t), "Streamd", 1)
	l.ready(l.member(1))
	l.ready(l.member(2))
	for i := range 10 {
		n := 1 + i%2
		l.killMember(n)
		l.ready(l.member(n))
	}
	l.check()
	stopClean(t, l.members[1], l.members[2])
}

// ledgerStreamdKillsAlone kills the only member of a group: what it had settled and not committed comes again.
func ledgerStreamdKillsAlone(t *testing.T) {
	l := newLoop(t, mainCluster(t), "Alone", 1)
	l.ready(l.member(1))
	for range 3 {
		l.killMember(1)
		l.ready(l.member(1))
	}
	l.check()
	stopClean(t, l.members[1])
}

// killMember kills streamd number n while its plugin has work in hand. The offsets are read the moment before: what is
// committed after that only narrows what may come again.
func (l *loop) killMember(n int) {
	l.t.Helper()
	m := l.members[n]
	l.busy(m.Name, l.least, func(e ledger.Entry) bool { return e.Host == m.PID() })
	offsets := committed(l.t, l.client, l.group(), l.topic())
	l.catch(m.Name, func(e ledger.Entry) bool { return e.Host == m.PID() })
	k := ledger.Kill{What: fmt.Sprintf("%s (%d)", m.Name, m.PID()), At: time.Now().UnixNano(), Host: m.PID(), Committed: offsets}
	if err := m.Signal(syscall.SIGKILL); err != nil {
		l.t.Fatal(err)
	}
	<-m.Done()
	var plugins []int
	for _, e := range l.entries() {
		if e.Host == m.PID() && !slices.Contains(plugins, e.PID) {
			plugins = append(plugins, e.PID)
		}
	}
	l.gone(k, plugins...)
}

// ledgerBrokerKills kills the broker under load and starts it again on its store.
func ledgerBrokerKills(t *testing.T) {
	l := newLoop(t, newPlace(t, cluster.Options{Broker: quickRetries()}), "Broker", 1)
	l.ready(l.member(1))
	broker := l.p.Brokers[0]
	for range 5 {
		l.killBroker("broker", broker.Kill)
		if err := broker.Start(within(l.t, patience)); err != nil {
			t.Fatal(err)
		}
		before := len(l.entries())
		until(t, 90*time.Second, "work goes on", func() (bool, string) { n := len(l.entries()); return n > before+100, fmt.Sprint(n - before) })
	}
	l.check()
	stopClean(t, l.members[1])
}

// killBroker kills a broker while the member's plugin has work in hand: the plugin stands still meanwhile, since it might end it all
// between a look and the kill. What was in flight ends while the broker dies: it counts at the signal.
func (l *loop) killBroker(what string, kill func()) {
	l.t.Helper()
	ours := func(e ledger.Entry) bool { return e.Host == l.members[1].PID() }
	l.busy("any", 3, ours)
	l.catch("any", ours)
	at := time.Now().UnixNano()
	kill()
	l.signal(syscall.SIGCONT, ours)
	l.kills = append(l.kills, ledger.Kill{What: what, At: at, Gone: at})
}

// ledgerHandOver restarts one of two members in peace under load: no duplicate, nothing lost.
func ledgerHandOver(t *testing.T) {
	l := newLoop(t, mainCluster(t), "HandOver", 1)
	l.ready(l.member(1))
	l.ready(l.member(2))
	for range 2 {
		l.busy("member 2", 3, func(e ledger.Entry) bool { return e.Host == l.members[2].PID() })
		stopClean(t, l.members[2])
		l.ready(l.member(2))
	}
	a := l.check()
	if len(a.Repeats) > 0 || a.Twice > 0 || len(a.Copies) > 0 {
		t.Errorf("a clean hand-over repeated %d deliveries; %d messages were handled twice, %d stored twice", len(a.Repeats), a.Twice, len(a.Copies))
	}
	stopClean(t, l.members[1], l.members[2])
}

func stopClean(t *testing.T, members ...*cluster.Process) {
	t.Helper()
	for _, m := range members {
		if err := m.Stop(patience); err != nil {
			t.Errorf("stopping %s: %v", m.Name, err)
		}
	}
}
