package interop

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/streamd/streamd/test/interop/cluster"
	"github.com/streamd/streamd/test/interop/ledger"
)

// proof is one group and what happens to it.
type proof struct {
	*loop
	order  string
	peers  map[string]*cluster.Process // Java and Go members, by name
	causes []ledger.Cause
	hosts  map[int]bool // pids of streamd members that were ever there
	queues int
}

type proofs []*proof

// freeze stops all processes of a member for a while, as the host of a virtual machine does.
type freeze struct {
	of     *proof
	member string
	length time.Duration
}

func newProof(t *testing.T, p *place, name, order string, perBroker int) *proof {
	t.Helper()
	l := newLoopOf(t, p, name, 1, perBroker)
	l.rate, l.seconds, l.least = 100, 900, 1
	if order != "none" {
		l.keys = "    order: " + order + "\n    retry: {backoff: {first: 200ms, max: 2s}}"
		l.words = func(random *rand.Rand) string { // nothing leaves its place in a queue
			switch r := random.IntN(100); {
			case r < 3:
				return "fail-1"
			case r < 15:
				return fmt.Sprintf("slow-%d", 20+random.IntN(80))
			default:
				return "ok"
			}
		}
	}
	return &proof{loop: l, order: order, peers: map[string]*cluster.Process{}, hosts: map[int]bool{}, queues: perBroker * max(1, len(p.Brokers))}
}

// run lets everything happen, and checks the ledgers.
func (ps proofs) run(t *testing.T, restartBroker func(), freezes []freeze) {
	ps.each(func(p *proof) {
		p.load()
		p.streamd(1)
		p.java("java 1")
		if p.order == "none" {
			p.golang("go")
		}
		p.streamd(2)
		p.java("java 2")
	})
	ps.each((*proof).whole)
	ps.each((*proof).leaves)
	ps.each((*proof).whole)
	ps.each((*proof).die)
	ps.each((*proof).whole)
	ps.each((*proof).pluginCrash)
	ps.frozen(t, restartBroker, freezes)
	ps.each((*proof).whole)
	ps.each((*proof).reset)
	ps.each((*proof).whole)
	ps.each((*proof).holds)
}

func (ps proofs) each(do func(*proof)) {
	for _, p := range ps {
		do(p)
	}
}

// settling is how long after a change members may find out one after the other what they own: a foreign member asks every 20 s.
const settling = time.Minute

// happens notes a cause that begins now. reach is what may have been settled before and not stored.
func (p *proof) happens(what string, host int, reach time.Duration) *ledger.Cause {
	now := time.Now()
	p.causes = append(p.causes, ledger.Cause{What: what, Host: host, From: now.UnixNano(), Until: now.Add(settling).UnixNano(), Reach: reach})
	return &p.causes[len(p.causes)-1]
}

// changes notes that the membership changes: a hand-over to or from a foreign member may repeat what it had not committed,
// every 5 s, and what was in flight.
func (p *proof) changes() {
	p.happens("a hand-over with a Java or Go member", 0, 10*time.Second).Foreign = true
}

func (p *proof) streamd(n int) {
	p.t.Helper()
	p.changes()
	m := p.member(n)
	p.ready(m)
	p.hosts[m.PID()] = true
}

// peer takes a Java or Go member that is ready.
func (p *proof) peer(name string, m *cluster.Process) {
	p.t.Helper()
	p.t.Cleanup(m.Kill)
	p.peers[name] = m
	p.changes()
}

func (p *proof) java(name string) {
	p.t.Helper()
	p.changes() // it is a member before it says that it is ready
	for try := 1; ; try++ {
		m, err := p.p.Java(p.t.Context(), "Member", p.p.Addr, p.group(), p.topic(), p.file(), p.order)
		if err != nil {
			p.t.Fatal(err)
		}
		_, err = m.WaitLine(within(p.t, 5*time.Minute), line("#ready"))
		if err == nil {
			p.peer(name, m)
			return
		}
		m.Kill()
		// The Java client fails its start when its first request comes too early for its connection, or has no answer within 3 s.
		// Whoever runs it starts it again.
		if try == 3 || !strings.Contains(err.Error(), "remoting.exception.Remoting") {
			p.t.Fatal(err)
		}
	}
}

func (p *proof) golang(name string) {
	p.t.Helper()
	p.changes()
	m, err := cluster.Start(name, exec.Command(built(p.t, shared.goPeer), "member", p.p.Addr, p.group(), p.topic(), p.file())) // ended by the test
	if err != nil {
		p.t.Fatal(err)
	}
	waitLine(p.t, m, line("#ready"))
	p.peer(name, m)
}

// whole waits until all members are there and each queue has one owner.
func (p *proof) whole() {
	p.t.Helper()
	p.p.settled(p.t, p.group(), p.topic(), len(p.members)+len(p.peers), p.queues)
}

// leaves lets a member of each kind leave and come back.
func (p *proof) leaves() {
	p.t.Helper()
	p.stopStreamd(2)
	p.stopJava("java 2")
	p.whole()
	p.streamd(2)
	p.java("java 2")
}

// stopStreamd ends streamd number n by SIGTERM.
func (p *proof) stopStreamd(n int) {
	p.t.Helper()
	p.changes()
	stopClean(p.t, p.members[n])
	delete(p.members, n)
}

// stopJava has a Java member shut its consumer down.
func (p *proof) stopJava(name string) {
	p.t.Helper()
	p.changes()
	if err := p.peers[name].Write("leave"); err != nil {
		p.t.Fatal(err)
	}
	<-p.peers[name].Done()
	delete(p.peers, name)
}

// die kills a member of each kind with work in hand, and starts it again.
func (p *proof) die() {
	p.t.Helper()
	p.killMember(2)
	k := p.kills[len(p.kills)-1]
	p.causes = append(p.causes, ledger.Cause{What: "kill -9 of streamd", Host: k.Host, From: k.At, Until: k.Gone + int64(settling), Reach: 5 * time.Second})
	p.changes()
	p.streamd(2)
	for _, name := range []string{"go", "java 1"} {
		m := p.peers[name]
		if m == nil {
			continue
		}
		p.busy(name, 1, func(e ledger.Entry) bool { return e.Host == m.PID() })
		p.happens("kill -9 of "+name, m.PID(), 10*time.Second)
		p.changes()
		m.Kill()
		if name == "go" {
			p.golang(name)
		} else {
			p.java(name)
		}
	}
}

// pluginCrash kills the plugin process of streamd 1 with work in hand.
func (p *proof) pluginCrash() {
	p.t.Helper()
	host := p.members[1].PID()
	// streamd may have replaced a process, and what that one had in hand has no end in the ledger.
	mine := func(e ledger.Entry) bool { return e.Host == host && syscall.Kill(e.PID, 0) == nil }
	p.catch("the plugin of streamd 1", mine)
	held := slices.DeleteFunc(ledger.InFlight(p.entries()), func(e ledger.Entry) bool { return !mine(e) })
	k := ledger.Kill{What: fmt.Sprint("plugin ", held[0].PID), At: time.Now().UnixNano(), PID: held[0].PID}
	if err := syscall.Kill(k.PID, syscall.SIGKILL); err != nil {
		p.t.Fatal(err)
	}
	p.signal(syscall.SIGCONT, mine)
	p.happens("a crash of the plugin", host, time.Second)
	p.gone(k, k.PID)
}

// pids lists the processes of a member: itself and its children.
func (p *proof) pids(name string) (host int, all []int) {
	p.t.Helper()
	if n, ok := strings.CutPrefix(name, "streamd "); ok {
		i, err := strconv.Atoi(n)
		if err != nil {
			p.t.Fatal(err)
		}
		host = p.members[i].PID()
	} else {
		host = p.peers[name].PID()
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		p.t.Fatal(err)
	}
	all = []int{host}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			p.t.Fatal(err)
		}
		// pid (name) state parent …
		_, rest, _ := strings.Cut(string(text), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == fmt.Sprint(host) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				p.t.Fatal(err)
			}
			all = append(all, pid)
		}
	}
	return host, all
}

// frozen freezes members all at once, kills a broker meanwhile, and thaws each when its time is up.
func (ps proofs) frozen(t *testing.T, restartBroker func(), freezes []freeze) {
	t.Helper()
	slices.SortFunc(freezes, func(a, b freeze) int { return int(a.length - b.length) })
	start := time.Now()
	thaw := make([]func(), len(freezes))
	for i, f := range freezes {
		host, pids := f.of.pids(f.member)
		f.of.busy(f.member, 1, func(e ledger.Entry) bool { return e.Host == host })
		c := f.of.happens(fmt.Sprintf("SIGSTOP of %s for %s", f.member, f.length), host, 10*time.Second)
		c.Until += int64(f.length)
		f.of.happens("a hand-over with a Java or Go member", 0, 10*time.Second).Foreign = true
		f.of.causes[len(f.of.causes)-1].Until += int64(f.length)
		for _, pid := range pids {
			err := syscall.Kill(pid, syscall.SIGSTOP)
			if err != nil && (pid == host || !errors.Is(err, syscall.ESRCH)) { // a plugin may have been replaced since it was listed
				t.Fatal(err)
			}
		}
		thaw[i] = func() {
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGCONT) // a plugin may have been killed for its silence
			}
		}
	}
	ps.each(func(p *proof) {
		// What a broker had acknowledged and not stored of the offsets, it stores every 5 s.
		p.happens("kill -9 of a broker", 0, 20*time.Second)
	})
	restartBroker()
	for i, f := range freezes {
		timer := time.NewTimer(time.Until(start.Add(f.length)))
		select {
		case <-timer.C:
		case <-t.Context().Done():
		}
		thaw[i]()
	}
}

// reset sets the group back by some seconds, while all are at work.
func (p *proof) reset() {
	p.t.Helper()
	const back = 10 * time.Second
	// A queue that is further behind would be set forward, past what nobody has handled yet.
	until(p.t, 3*time.Minute, "the group keeps up", func() (bool, string) {
		lag, err := p.p.lag(p.t, p.group())
		return err == nil && lag < 50, fmt.Sprint(lag, err)
	})
	to := time.Now().Add(-back)
	p.happens("the reset", 0, back+10*time.Second)
	out := p.p.run(p.t, "resetOffsetByTime", "-g", p.group(), "-t", p.topic(), "-s", fmt.Sprint(to.UnixMilli()))
	if strings.Contains(out, "Exception") {
		p.t.Errorf("the reset was refused:\n%s", out)
	}
	before := len(p.entries())
	until(p.t, time.Minute, "work goes on after the reset", func() (bool, string) { n := len(p.entries()); return n > before+500, fmt.Sprint(n - before) })
}

// holds ends the load, waits until everything is done, and holds the ledger against the promises.
func (p *proof) holds() {
	p.t.Helper()
	produced := p.sent()
	var left []string
	until(p.t, 3*time.Minute, fmt.Sprintf("%d messages are handled", len(produced)), func() (bool, string) {
		handled := ledger.Handled(p.entries())
		left = slices.DeleteFunc(slices.Clone(produced), func(b string) bool { return handled[b] > 0 || rejected(b) })
		return len(left) == 0, fmt.Sprintf("%d left: %.300v", len(left), left)
	})
	dead := map[string]bool{}
	rejects := len(slices.DeleteFunc(slices.Clone(produced), func(b string) bool { return !rejected(b) }))
	until(p.t, 2*time.Minute, fmt.Sprintf("%d dead letters", rejects), func() (bool, string) {
		bodies, err := p.dead()
		for _, b := range bodies {
			dead[b] = true
		}
		return err == nil && len(dead) >= rejects, fmt.Sprint(len(dead), err)
	})
	for b := range dead {
		if !rejected(b) {
			p.t.Errorf("%q is a dead letter, and no handler rejected it", b)
		}
	}
	entries := p.entries()
	g := ledger.CheckGroup(entries, produced, func(b string) bool { return dead[b] }, p.causes, func(host int) bool { return p.hosts[host] }, p.order == "queue")
	p.t.Logf("%s: %d produced, %d dead letters, %d deliveries, LOST %d; handled again: %v; two at work on a queue: %v; foreign members out of order: %d",
		p.group(), len(produced), len(dead), len(entries)/2, len(g.Lost), g.Again, g.Overlaps, g.Disorder)
	if len(g.Lost) > 0 {
		p.t.Errorf("LOSS %d: %.300v", len(g.Lost), g.Lost)
	}
	for i, fault := range g.Faults {
		if i == 20 {
			p.t.Errorf("and %d more", len(g.Faults)-i)
			break
		}
		p.t.Error(fault)
	}
	for _, k := range p.kills {
		inFlight, settled := ledger.Bound(entries, k)
		if inFlight == 0 {
			p.t.Errorf("the kill of %s hit no work in flight: it proves nothing", k.What)
		}
		if n := g.Again["kill -9 of streamd"]; k.Committed != nil && n > settled+inFlight+slack {
			p.t.Errorf("%d messages were handled again after the kill of %s; %d were settled since the last commit and %d in flight", n, k.What, settled, inFlight)
		}
	}
	for _, m := range p.members {
		stopClean(p.t, m)
	}
}
