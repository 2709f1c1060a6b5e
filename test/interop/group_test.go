package interop

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/test/interop/cluster"
	"github.com/streamd/streamd/test/interop/ledger"
)

const sharedQueues = 16

// TestGroup_sharedWithJavaAndGo puts two streamd members, a Java and a Go member into one group of 16 queues and lets them
// join, leave and die under a steady load. Whenever it settled every queue has one owner; in the end every message was
// handled, and each that was handled twice has a reason that promise 2 names.
func TestGroup_sharedWithJavaAndGo(t *testing.T) {
	p := mainCluster(t)
	topic, group := p.topic(t, "Shared", sharedQueues), "shared"
	c := newClient(t, p.Addr)
	first := p.streamd(t, stream{group: group, topic: topic, handler: "slow: 30ms"}).ready(t)
	p.settled(t, group, topic, 1, sharedQueues)
	load := p.java(t, "Produce", topic, "1000000", "200", "1", "t", "150")

	java := p.javaReady(t, "Consume", group, topic, "*")
	p.settled(t, group, topic, 2, sharedQueues)
	golang := p.goPeer(t, "consume", group, topic, "*")
	waitLine(t, golang, line("#ready"))
	g := p.settled(t, group, topic, 3, sharedQueues)
	checkTools(t, p, group, topic, len(g.Members))
	second := p.streamd(t, stream{group: group, topic: topic}).ready(t)
	p.settled(t, group, topic, 4, sharedQueues)

	if err := java.Write("leave"); err != nil { // cleanly
		t.Fatal(err)
	}
	<-java.Done()
	p.settled(t, group, topic, 3, sharedQueues)
	offsets := committed(t, c, group, topic)
	inHand := busy(t, first)
	killed := time.Now()
	first.kill(t)
	p.settled(t, group, topic, 2, sharedQueues)
	golang.Kill()
	p.settled(t, group, topic, 1, sharedQueues)

	load.Kill()
	ids := sent(load.Lines())
	all := collect(t, ids, []*member{first, second}, map[string]*cluster.Process{"java": java, "go": golang})
	checkDuplicates(t, all, first.PID(), second.PID(), killed, offsets)
	t.Logf("%d messages; in hand at the kill of streamd: %d", len(ids), inHand)
	until(t, time.Minute, "what the producer's kill left unacknowledged is handled too", func() (bool, string) {
		lag, err := p.lag(t, group)
		return lag == 0 && err == nil, fmt.Sprint(lag, err)
	})
	second.stop(t)
	if lag, err := p.lag(t, group); lag != 0 || err != nil {
		t.Errorf("lag after all were handled: %d, %v", lag, err)
	}
}

// busy waits until a member has a message in hand, so that its kill hits work in flight.
func busy(t *testing.T, m *member) int {
	t.Helper()
	n := 0
	until(t, 20*time.Second, "a message in hand", func() (bool, string) {
		e, err := ledger.Read(m.ledger)
		n = len(ledger.InFlight(e))
		return n > 0, fmt.Sprint(len(e), err)
	})
	return n
}

// checkTools compares what mqadmin sees.
func checkTools(t *testing.T, p *place, group, topic string, members int) {
	t.Helper()
	progress := p.run(t, "consumerProgress", "-g", group, "-t", topic)
	rows := 0
	for l := range strings.Lines(progress) {
		if f := strings.Fields(l); len(f) > 5 && f[0] == topic {
			rows++
		}
	}
	if rows != sharedQueues {
		t.Errorf("consumerProgress shows %d queues, want %d:\n%s", rows, sharedQueues, progress)
	}
	connection := p.run(t, "consumerConnection", "-g", group)
	languages := strings.Count(connection, " JAVA ") + strings.Count(connection, " GO ")
	if languages != members {
		t.Errorf("consumerConnection shows %d members, want %d:\n%s", languages, members, connection)
	}
}

// delivery is one time that somebody handled a message.
type delivery struct {
	who        string // java, go, or a streamd's pid
	queue      string // of streamd members, as the ledger's Kill.Committed names it
	offset     int64  // of streamd members
	attempt    int    // of streamd members
	start, end time.Time
}

// collect waits until every message was handled by somebody and returns the deliveries of each.
func collect(t *testing.T, ids map[string]string, members []*member, peers map[string]*cluster.Process) map[string][]delivery {
	t.Helper()
	var all map[string][]delivery
	until(t, 90*time.Second, "LOSS 0", func() (bool, string) {
		all = map[string][]delivery{}
		for name, p := range peers {
			for _, l := range p.Lines() {
				if f := strings.Fields(l); len(f) == 6 && f[0] == "got" {
					all[f[2]] = append(all[f[2]], delivery{who: name})
				}
			}
		}
		for _, m := range members {
			entries, err := ledger.Read(m.ledger)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if e.Event == ledger.End && e.Error == "" {
					queue, offset := ledger.PlaceOf(e)
					all[e.Body] = append(all[e.Body], delivery{who: fmt.Sprint(e.Host), queue: queue, offset: offset, attempt: e.Attempt, start: time.Unix(0, e.At), end: time.Unix(0, e.At)})
				}
			}
		}
		var missing []string
		for body := range ids {
			if len(all[body]) == 0 {
				missing = append(missing, body)
			}
		}
		slices.Sort(missing)
		return len(missing) == 0, fmt.Sprintf("%d of %d messages lost: %.200v", len(missing), len(ids), missing)
	})
	return all
}

// checkDuplicates names each message that was handled twice. Between streamd members that hand over there are none; after
// the kill of one, what it settled beyond the offsets that were stored a moment before.
func checkDuplicates(t *testing.T, all map[string][]delivery, killed, other int, at time.Time, offsets map[string]int64) {
	t.Helper()
	counts := map[string]int{}
	for body, ds := range all {
		for i := 1; i < len(ds); i++ {
			a, b := ds[i-1], ds[i]
			switch {
			case a.attempt != b.attempt && a.attempt > 0 && b.attempt > 0:
				// No handler of streamd's fails here: a member that left had it in hand, and sent it back while the queue went on.
				counts["sent back by a Java or Go member"]++
			case a.who == fmt.Sprint(other) && b.who == a.who || a.who == fmt.Sprint(killed) && b.who == a.who:
				t.Errorf("%s was handled twice by one member, streamd %s: attempt %d at %s@%d until %s, attempt %d at %s@%d until %s (the kill was at %s)",
					body, a.who, a.attempt, a.queue, a.offset, a.end.Format(time.StampMicro), b.attempt, b.queue, b.offset, b.end.Format(time.StampMicro), at.Format(time.StampMicro))
			case a.who == fmt.Sprint(killed) && b.who == fmt.Sprint(other):
				counts["after streamd was killed"]++
				if a.offset < offsets[a.queue] {
					t.Errorf("%s was handled at %s@%d, %s before the kill of its member, and again by another, though %d was stored", body, a.queue, a.offset, at.Sub(a.end), offsets[a.queue])
				}
			default:
				counts["with a Java or Go member ("+a.who+", "+b.who+")"]++
			}
		}
	}
	t.Logf("LOSS 0, duplicates: %v", counts)
}

// TestGroup_handOverBetweenStreamdMembers: no duplicate when members join and leave cleanly.
func TestGroup_handOverBetweenStreamdMembers(t *testing.T) {
	p := mainCluster(t)
	topic, group := p.topic(t, "HandOver", sharedQueues), "hand-over"
	const n = 3000
	first := p.streamd(t, stream{group: group, topic: topic, handler: "slow: 5ms"}).ready(t)
	p.settled(t, group, topic, 1, sharedQueues)
	load := p.java(t, "Produce", topic, fmt.Sprint(n), "200", "1", "t", "200")
	second := p.streamd(t, stream{group: group, topic: topic, handler: "slow: 5ms"}).ready(t)
	p.settled(t, group, topic, 2, sharedQueues)
	first.stop(t)
	p.settled(t, group, topic, 1, sharedQueues)
	waitLine(t, load, line("#done"))
	all := collect(t, sent(load.Lines()), []*member{first, second}, nil)
	for body, ds := range all {
		if len(ds) > 1 {
			t.Errorf("%s was handled %d times: %v", body, len(ds), ds)
		}
	}
	if len(all) != n {
		t.Errorf("%d messages were handled, want %d", len(all), n)
	}
}
