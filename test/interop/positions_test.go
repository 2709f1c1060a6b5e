package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/test/interop/cluster"
	"github.com/streamd/streamd/test/interop/ledger"
)

// TestPositions runs the commands of mqadmin that move a group about, on a streamd member and the main version;
// TestVersions_oldAndNew runs those that differ by version on the others. From 5.2 a reset comes as code 21, before by 220.
func TestPositions(t *testing.T) {
	t.Parallel()
	p := mainCluster(t)
	side(t, p, map[string]scene{
		"back": steerBack, "back, and killed": steerBackKilled, "ahead": steerAhead, "back, nobody there": steerStopped, "new group": newGroups, "seen later": seenLater,
	})
}

// seenLater is what members see in their own time, up to half a minute later: it is waited for together.
func seenLater(t *testing.T, p *place) {
	var finish []func(*testing.T)
	for _, begin := range []func(*testing.T, *place) func(*testing.T){steerLonger, steerRemade, steerToCome, steerPaused} {
		finish = append(finish, begin(t, p))
	}
	for _, f := range slices.Backward(finish) {
		f(t)
	}
}

// scene is a test on a cluster that others use too.
type scene func(t *testing.T, p *place)

// side runs scenes side by side and waits for them.
func side(t *testing.T, p *place, scenes map[string]scene) {
	t.Helper()
	t.Run("side by side", func(t *testing.T) {
		for name, s := range scenes {
			t.Run(name, func(t *testing.T) { t.Parallel(); s(t, p) })
		}
	})
}

const steered = 40

// steered is a group with a topic of two queues and n messages.
func (p *place) steered(t *testing.T, name string, n int) (topic, group string, c *rocketmq.Client) {
	t.Helper()
	topic, group = p.topic(t, name, 2), strings.ToLower(name)
	c = newClient(t, p.Addr)
	sendN(t, c, topic, "ok a", n)
	return topic, group, c
}

// reset moves a group to where its topic was an hour ago, or to the end.
func (p *place) reset(t *testing.T, group, topic string, back bool) {
	t.Helper()
	at := "now"
	if back {
		at = fmt.Sprint(time.Now().Add(-time.Hour).UnixMilli())
	}
	if out := p.run(t, "resetOffsetByTime", "-g", group, "-t", topic, "-s", at); strings.Contains(out, "Exception") {
		t.Fatal(out)
	}
}

// steerBack resets while messages are in hand. Their verdicts come late and change nothing: what was handled before the
// command is handled once more, all of it, and the group ends at the end.
func steerBack(t *testing.T, p *place) {
	topic, group, c := p.steered(t, "SteerBack", steered)
	m := p.streamd(t, stream{group: group, topic: topic, handler: "slow: 300ms", keys: "concurrency: 4"}).ready(t)
	before := ledger.Handled(m.handled(t, steered/2, time.Minute))
	p.reset(t, group, topic, true)
	sendN(t, c, topic, "ok b", 4) // consumption goes on meanwhile
	p.times(t, m.ledger, steered+4, func(body string) (least, most int) {
		switch {
		case before[body] > 0:
			return 2, 2
		case strings.HasPrefix(body, "ok a"):
			return 1, 2 // handled between the two, or after
		}
		return 1, 2
	})
	p.idle(t, c, group, topic)
	m.stop(t)
}

// steerBackKilled: a reset that the member took is not undone by its kill.
func steerBackKilled(t *testing.T, p *place) {
	topic, group, c := p.steered(t, "SteerKilled", steered)
	m := p.streamd(t, stream{group: group, topic: topic, handler: "slow: 20ms", keys: "concurrency: 1\nbatch: {max: 1}"}).ready(t)
	m.handled(t, steered, time.Minute)
	p.idle(t, c, group, topic)
	if p.Version != cluster.Old { // streamd does not say no to a mode that it does not use
		p.run(t, "setConsumeMode", "-c", "DefaultCluster", "-t", topic, "-g", group, "-m", "POP", "-q", "8")
	}
	p.reset(t, group, topic, true)
	sendN(t, c, topic, "ok b", 2) // ends the pulls that wait, so that the next ones hear of it
	until(t, time.Minute, "a message again", func() (bool, string) {
		n := sum(ledger.Handled(p.entries(t, m)))
		return n > steered+2, fmt.Sprint(n)
	})
	m.kill(t)
	second := p.streamd(t, stream{group: group, topic: topic, ledger: m.ledger}).ready(t)
	p.times(t, m.ledger, steered+2, func(body string) (least, most int) {
		if strings.HasPrefix(body, "ok b") {
			return 1, 3
		}
		return 2, 3
	})
	p.idle(t, c, group, topic)
	second.stop(t)
}

// steerAhead and steerSkipped: what is skipped is not delivered any more, and what comes later is, once.
func steerAhead(t *testing.T, p *place) {
	ahead(t, p, "SteerAhead", func(group, topic string) { p.reset(t, group, topic, false) })
}

func steerSkipped(t *testing.T, p *place) {
	ahead(t, p, "SteerSkipped", func(group, topic string) { p.run(t, "skipAccumulatedMessage", "-g", group, "-t", topic) })
}

func ahead(t *testing.T, p *place, name string, move func(group, topic string)) {
	t.Helper()
	topic, group, c := p.steered(t, name, 4)
	m := p.streamd(t, stream{group: group, topic: topic, handler: "slow: 100ms", keys: "concurrency: 1\nbatch: {max: 1}\nwindow: {messages: 4}"}).ready(t)
	m.handled(t, 4, time.Minute)
	p.idle(t, c, group, topic)
	sendN(t, c, topic, "ok late", 600) // a minute's work
	m.handled(t, 8, time.Minute)
	move(group, topic)
	p.idle(t, c, group, topic)
	sendN(t, c, topic, "ok new", 10)
	p.prefix(t, m, "ok new", 10)
	handled := ledger.Handled(p.entries(t, m))
	if n := len(handled); n > 400 {
		t.Errorf("%d of 614 messages were handled: the skip took no effect", n)
	}
	for body, n := range handled {
		if n != 1 {
			t.Errorf("%s was handled %d times", body, n)
		}
	}
	m.stop(t)
}

// steerStopped: with nobody of the group there, the command moves what is stored.
func steerStopped(t *testing.T, p *place) {
	topic, group, c := p.steered(t, "SteerStopped", steered)
	m := p.streamd(t, stream{group: group, topic: topic}).ready(t)
	m.handled(t, steered, time.Minute)
	p.idle(t, c, group, topic)
	m.stop(t)
	p.reset(t, group, topic, true)
	again := p.streamd(t, stream{group: group, topic: topic, ledger: m.ledger}).ready(t)
	p.times(t, m.ledger, steered, func(string) (least, most int) { return 2, 2 })
	again.stop(t)
}

// steerPaused: a group whose consumption is switched off waits and says so, and goes on by itself.
func steerPaused(t *testing.T, p *place) func(*testing.T) {
	t.Helper()
	topic, group, c := p.steered(t, "SteerPaused", 4)
	m := p.streamd(t, stream{group: group, topic: topic}).ready(t)
	m.handled(t, 4, time.Minute)
	p.run(t, "updateSubGroup", "-c", "DefaultCluster", "-g", group, "-s", "false")
	sendN(t, c, topic, "ok b", 4) // ends the pulls that wait
	return func(t *testing.T) {
		t.Helper()
		p.holds(t, group, "group_disabled")
		handled := len(ledger.Handled(p.entries(t, m)))
		sendN(t, c, topic, "ok c", 4)
		p.holds(t, group, "group_disabled")
		if n := len(ledger.Handled(p.entries(t, m))); n != handled {
			t.Errorf("%d messages were handled by a group that is switched off", n-handled)
		}
		p.run(t, "updateSubGroup", "-c", "DefaultCluster", "-g", group, "-s", "true")
		m.handled(t, 12, time.Minute)
		m.stop(t)
	}
}

// steerRemade: a topic that is deleted and made again while it is consumed; its new messages are read (OF-P06).
func steerRemade(t *testing.T, p *place) func(*testing.T) {
	t.Helper()
	topic, group, c := p.steered(t, "SteerRemade", steered)
	m := p.streamd(t, stream{group: group, topic: topic}).ready(t)
	m.handled(t, steered, time.Minute)
	p.idle(t, c, group, topic)
	p.run(t, "deleteTopic", "-c", "DefaultCluster", "-t", topic)
	until(t, time.Minute, "the topic to go", func() (bool, string) {
		out := p.run(t, "topicRoute", "-t", topic)
		return strings.Contains(out, "CODE: 17"), out
	})
	p.topic(t, "SteerRemade", 2)
	until(t, time.Minute, "a message in the new topic", func() (bool, string) {
		_, err := c.Send(t.Context(), &rocketmq.OutgoingMessage{Topic: topic, Body: []byte("ok new")})
		return err == nil, fmt.Sprint(err)
	})
	sendN(t, c, topic, "ok new", 9)
	return func(t *testing.T) {
		t.Helper()
		p.prefix(t, m, "ok new", 10)
		m.stop(t)
	}
}

// steerLonger: a queue that a topic gets while it is consumed is read from its first message on, whatever start_from says.
func steerLonger(t *testing.T, p *place) func(*testing.T) {
	t.Helper()
	topic, group, c := p.steered(t, "SteerLonger", 4)
	m := p.streamd(t, stream{group: group, topic: topic, from: "last"}).ready(t)
	p.idle(t, c, group, topic)
	p.topic(t, topic, 4)
	until(t, time.Minute, "messages in the new queues", func() (bool, string) {
		queues, err := c.Queues(t.Context(), topic)
		if err != nil || len(queues) != 4 {
			return false, fmt.Sprint(queues, err)
		}
		for _, q := range queues[2:] {
			for i := range 3 {
				send(t, c, &rocketmq.OutgoingMessage{Topic: topic, Queue: &q, Body: fmt.Appendf(nil, "ok %d-%d", q.ID, i)})
			}
		}
		return true, ""
	})
	return func(t *testing.T) {
		t.Helper()
		p.times(t, m.ledger, 6, func(body string) (least, most int) {
			if strings.HasPrefix(body, "ok a") {
				return 0, 0
			}
			return 1, 1
		})
		m.stop(t)
	}
}

// steerToCome: a topic that is not there is waited for, and the status says what makes it.
func steerToCome(t *testing.T, p *place) func(*testing.T) {
	t.Helper()
	const topic, group = "SteerToCome", "steertocome"
	m := p.streamd(t, stream{group: group, topic: topic})
	m.tells(t, "route_unknown", "mqadmin updateTopic -c CLUSTER -t "+topic)
	p.topic(t, topic, 2)
	c := newClient(t, p.Addr)
	sendN(t, c, topic, "ok a", 4)
	return func(t *testing.T) {
		t.Helper()
		m.handled(t, 4, 90*time.Second)
		m.stop(t)
	}
}

// newGroups: where a group starts that has no offsets, with start_from first, last and a time. The topic is young, and in such
// a one brokers tell a position of 0 to whoever does not say that it knows better.
func newGroups(t *testing.T, p *place) {
	topic, _, c := p.steered(t, "NewGroups", steered)
	after := time.NewTimer(50 * time.Millisecond) // store times differ
	<-after.C
	at := time.Now()
	sendN(t, c, topic, "ok b", steered)
	shown(t, c, topic, 2*steered) // the last is behind all of them
	groups := []struct {
		name, from string
		want       int
		m          *member
	}{
		{name: "first", from: "first", want: 2 * steered},
		{name: "last", from: "last"},
		{name: "time", from: "{timestamp: " + at.Format(time.RFC3339Nano) + "}", want: steered},
	}
	for i, g := range groups {
		groups[i].m = p.streamd(t, stream{group: "newgroups-" + g.name, topic: topic, from: g.from})
	}
	for _, g := range groups {
		g.m.ready(t)
		p.idle(t, c, "newgroups-"+g.name, topic)
	}
	sendN(t, c, topic, "ok c", 4)
	for _, g := range groups {
		p.times(t, g.m.ledger, g.want+4, func(body string) (least, most int) {
			if g.name == "last" && !strings.HasPrefix(body, "ok c") || g.name == "time" && strings.HasPrefix(body, "ok a") {
				return 0, 0
			}
			return 1, 1
		})
		g.m.stop(t)
	}
}

func sum(n map[string]int) (all int) {
	for _, k := range n {
		all += k
	}
	return all
}

// idle waits until the group has an offset at the end of every queue of a topic.
func (p *place) idle(t *testing.T, c *rocketmq.Client, group, topic string) {
	t.Helper()
	until(t, time.Minute, "every queue's end committed", func() (bool, string) {
		queues, err := c.Queues(t.Context(), topic)
		if err != nil {
			return false, err.Error()
		}
		for _, q := range queues {
			end, err1 := c.MaxOffset(t.Context(), q)
			at, ok, err2 := c.Committed(t.Context(), group, q)
			if err := errors.Join(err1, err2); err != nil || !ok || at != end {
				return false, fmt.Sprintf("%s: %d, stored %t, of %d, %v", q, at, ok, end, err)
			}
		}
		return len(queues) > 0, ""
	})
}

// shown waits until a topic's queues end at n messages altogether: a broker shows messages a moment after it stored them.
func shown(t *testing.T, c *rocketmq.Client, topic string, n int64) {
	t.Helper()
	until(t, time.Minute, fmt.Sprintf("%d messages in %s", n, topic), func() (bool, string) {
		queues, err := c.Queues(t.Context(), topic)
		var sum int64
		for _, q := range queues {
			end, e := c.MaxOffset(t.Context(), q)
			sum, err = sum+end, errors.Join(err, e)
		}
		return err == nil && sum >= n, fmt.Sprint(sum, err)
	})
}

// prefix waits until n messages whose bodies start so were handled.
func (p *place) prefix(t *testing.T, m *member, prefix string, n int) {
	t.Helper()
	until(t, 90*time.Second, fmt.Sprintf("%d messages %q", n, prefix), func() (bool, string) {
		got := 0
		for _, e := range p.entries(t, m) {
			if e.Event == ledger.End && e.Error == "" && strings.HasPrefix(e.Body, prefix) {
				got++
			}
		}
		return got >= n, fmt.Sprint(got)
	})
}

// times waits until n messages were handled as often as they are to be, at least, and wants none of them more often.
func (p *place) times(t *testing.T, file string, n int, want func(body string) (least, most int)) {
	t.Helper()
	entries, err := ledger.Wait(within(t, patience), file, func(e []ledger.Entry) bool {
		ok := 0
		for body, k := range ledger.Handled(e) {
			if least, _ := want(body); k >= least {
				ok++
			}
		}
		return ok >= n
	})
	handled := ledger.Handled(entries)
	if err != nil {
		t.Fatalf("%v; %v", err, handled)
	}
	for body, k := range handled {
		if least, most := want(body); k < least || k > most {
			t.Errorf("%s was handled %d times, want %d to %d", body, k, least, most)
		}
	}
}

// holds waits until the group's status names a kind of hold.
func (p *place) holds(t *testing.T, group, kind string) {
	t.Helper()
	until(t, time.Minute, "a hold "+kind, func() (bool, string) {
		g, err := p.status(t, group)
		text := asJSON(g)
		return err == nil && strings.Contains(text, kind), fmt.Sprint(text, err)
	})
}

// tells waits until the member's own status has all the words.
func (m *member) tells(t *testing.T, words ...string) {
	t.Helper()
	until(t, time.Minute, fmt.Sprintf("%q in the status", words), func() (bool, string) {
		text, err := m.get(t.Context(), "/api/v1/status")
		missing := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return strings.Contains(text, w) })
		return err == nil && len(missing) == 0, fmt.Sprint(text, err)
	})
}

// counted is one of the member's counters.
func (m *member) counted(t *testing.T, name string) (n uint64) {
	t.Helper()
	var st struct {
		Streams []struct {
			Counters map[string]uint64 `json:"counters"`
		} `json:"streams"`
	}
	text, err := m.get(t.Context(), "/api/v1/status")
	if err == nil {
		err = json.Unmarshal([]byte(text), &st)
	}
	if err != nil || len(st.Streams) != 1 {
		t.Fatalf("status: %v\n%s", err, text)
	}
	return st.Streams[0].Counters[name]
}
