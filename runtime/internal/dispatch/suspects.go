package dispatch

import (
	"slices"
	"strconv"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/runtime/internal/queue"
)

// soloState follows the one lane where suspects run alone.
type soloState struct {
	state soloPhase
	lane  *lane
	// What paces the tries of a plugin that dies on all of them.
	notUntil time.Time
	unproven int    // solo crashes since anything was acked
	acks     uint64 // over all, at the last of them
	last     string // message of the last of them
	text     string // and how the process ended
}

// soloCrashesToBroken is how many messages that were alone, one after the other, a plugin may die on before it is known to be
// broken: with many suspects the same one is tried again only after all others.
const soloCrashesToBroken = 3

type soloPhase uint8

const (
	soloNone soloPhase = iota
	soloOpening
	soloOpen
	soloClosing
)

// lossesToSuspect is how many lanes may die with a message in flight before it counts as a suspect though nobody named
// it: a plugin without the shared page names none.
const lossesToSuspect = 3

// The pauses between solo tries while nothing speaks for the plugin.
const (
	firstSoloPause = time.Second
	longSoloPause  = 30 * time.Second
)

// lost takes everything back that was out on a lane. None of it is an attempt (design.md 7).
func (c *Core) lost(now time.Time, l *lane, lost *frame.Lost) {
	c.lanes = slices.DeleteFunc(c.lanes, func(o *lane) bool { return o == l })
	c.layGhosts(l)
	c.running = slices.DeleteFunc(c.running, func(r running) bool { return r.lane == l })
	if l.solo {
		c.solo.state, c.solo.lane = soloNone, nil
	}
	if lost.Cause != frame.CauseSwap && lost.Cause != frame.CauseStopped {
		c.counters.LanesLost++
	}
	crash := blames(lost.Cause)
	if crash {
		c.counters.Crashes++
	}
	for _, r := range lost.Suspects {
		c.suspect(now, l, r, lost)
	}
	c.takeBack(now, l, crash, lost)
}

// blames tells whether a cause says something against a message.
func blames(cause frame.Cause) bool {
	return cause == frame.CauseCrash || cause == frame.CauseHang || cause == frame.CauseMemory
}

func (c *Core) suspect(now time.Time, l *lane, r frame.Ref, lost *frame.Lost) {
	f := l.flights[r.Seq]
	if f == nil {
		return
	}
	if d := l.answer(f, r.Index); d != nil {
		c.accuse(now, d, l, lost)
	}
}

// takeBack requeues what is left, the highest first, so that each queue has its order again.
func (c *Core) takeBack(now time.Time, l *lane, crash bool, lost *frame.Lost) {
	for _, seq := range slices.Backward(l.seqs()) {
		f := l.flights[seq]
		for _, d := range slices.Backward(f.items) {
			if d == nil {
				continue
			}
			if crash {
				d.Trial().Losses++
			}
			if crash && (l.solo || d.Trial().Losses >= lossesToSuspect && len(lost.Suspects) == 0) {
				c.accuse(now, d, l, lost)
				continue
			}
			c.counters.Redelivered++
			if d.Crashed() {
				c.backToSuspects(d)
				continue
			}
			c.requeue(now, d)
		}
	}
}

// accuse notes a crash against a message: it runs alone from now on, and is poison once the plugin has proved, between
// two of its solo crashes, that it can do its work.
func (c *Core) accuse(now time.Time, d *queue.Delivery, l *lane, lost *frame.Lost) {
	k := &d.Trial().Crash
	k.Count++
	k.Text = lost.Text
	c.counters.Suspects++
	class := "crash"
	if lost.Cause == frame.CauseHang {
		class = "hang"
	}
	c.act(Action{Kind: ActFailure, D: d, Verdict: frame.Verdict{Class: class, Text: lost.Text}, Info: &l.info})
	if l.solo {
		same := k.Solo > 0 && k.Key == l.key && k.By == c
		if same && c.acks[l.key] > k.Acks {
			c.counters.Poisoned++
			c.verdict(d, l, frame.Verdict{Kind: frame.VerdictReject, Class: "crash", Text: lost.Text})
			return
		}
		if !same {
			k.Key, k.Acks, k.By, k.Solo = l.key, c.acks[l.key], c, 0
		}
		k.Solo++
		c.solo.last, c.solo.text = d.Identity(), lost.Text
		c.pace(now)
	}
	c.backToSuspects(d)
}

// pace sets the pause before the next solo try, which grows while the plugin acks nothing.
func (c *Core) pace(now time.Time) {
	s := &c.solo
	if s.acks != c.counters.Acks {
		s.unproven = 0
	}
	s.acks = c.counters.Acks
	s.unproven++
	s.notUntil = now.Add(soloPause(s.unproven))
}

func soloPause(crashes int) time.Duration {
	d := firstSoloPause
	for range min(crashes-1, 10) {
		d *= 2
	}
	return min(d, longSoloPause)
}

// backToSuspects lets a message wait for its solo try; it counts as returned meanwhile.
func (c *Core) backToSuspects(d *queue.Delivery) {
	s := c.source(d.Own)
	s.out--
	if s.revoked {
		c.dropAll(d.Own, []*queue.Delivery{d}, true)
		c.forget(s)
		return
	}
	c.suspects = append(c.suspects, d)
	c.returned(d)
}

// trySolo runs the next suspect alone, opens the lane for it, or closes the lane when none is left.
func (c *Core) trySolo(now time.Time) {
	if len(c.suspects) == 0 {
		if c.solo.state == soloOpen && len(c.solo.lane.flights) == 0 && len(c.solo.lane.ghosts) == 0 {
			c.solo.state = soloClosing
			c.solo.lane.closing = true
			c.act(Action{Kind: ActClose, Lane: c.solo.lane.id})
		}
		return
	}
	if now.Before(c.solo.notUntil) {
		return
	}
	switch c.solo.state {
	case soloNone:
		c.solo.state = soloOpening
		c.act(Action{Kind: ActOpenSolo})
	case soloOpen:
		l := c.solo.lane
		if len(l.flights) > 0 || l.credits <= 0 {
			return
		}
		i := c.nextSuspect(now) // one that crashed went to the end
		if i < 0 {
			return
		}
		d := c.suspects[i]
		c.suspects = slices.Delete(c.suspects, i, i+1)
		c.source(d.Own).out++
		f := l.begin()
		d.SentAt = now
		f.items = append(f.items, d)
		c.launch(l, f)
	case soloOpening, soloClosing:
	}
}

// triesSolo tells that a suspect goes out, or its lane is opened, as soon as the pause between tries is over. One that waits for
// something of its strand is no reason to look again before something happens.
func (c *Core) triesSolo(now time.Time) bool {
	switch {
	case len(c.suspects) == 0 || c.quiet:
		return false
	case c.solo.state == soloOpen:
		return len(c.solo.lane.flights) == 0 && c.solo.lane.credits > 0 && c.nextSuspect(now) >= 0
	default:
		return c.solo.state == soloNone
	}
}

// Broken tells that suspects crashed alone, the same one again or several in a row, and nothing since speaks for the plugin.
func (c *Core) Broken() (text string, broken bool) {
	if s := &c.solo; s.unproven >= soloCrashesToBroken && s.acks == c.counters.Acks && len(c.suspects) > 0 {
		return "the plugin died " + strconv.Itoa(s.unproven) + " times in a row on messages that it had alone, last on " + s.last + ", and has handled no other since, so nothing is dead-lettered: " +
			"mend the plugin, or wait until it handles another message (" + s.text + ")", true
	}
	for _, d := range c.suspects {
		if k := &d.Trial().Crash; k.Solo >= 2 && k.By == c && c.acks[k.Key] <= k.Acks {
			return "the plugin died " + strconv.Itoa(k.Solo) + " times on message " + d.Identity() + " alone and has handled no other since, so nothing is dead-lettered: " +
				"mend the plugin, or wait until it handles another message (" + k.Text + ")", true
		}
	}
	return "", false
}

// Suspects is the number of messages that wait to be tried alone.
func (c *Core) Suspects() int { return len(c.suspects) }
