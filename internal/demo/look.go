package demo

import (
	"context"
	"time"
)

// look reads what the handlers wrote, and with ask what members and broker say, and draws the picture.
func (d *demo) look(ctx context.Context, ask bool) error {
	if ask {
		before, sure := d.ask(ctx)
		defer func() { // the journals are read after it: they know of everything that was settled then
			if sure {
				d.ledger.clear(before)
			}
		}()
	}
	if err := d.readJournals(); err != nil {
		return err
	}
	if ask {
		if err := d.readDead(ctx); err != nil {
			return err
		}
	}
	d.drawNow()
	return nil
}

// drawNow draws the picture as it is known.
func (d *demo) drawNow() {
	rows, sums := d.rows, d.ledger.sums()
	d.screen.draw(func(width int) []string { return draw(rows, sums, width) })
}

func (d *demo) readJournals() error {
	for _, m := range d.members {
		err := m.journal.read(func(a *attempt) {
			now := time.Now()
			n, ok := orderNumber(a.Order)
			if !ok {
				d.screen.say("yours", "%s %s, attempt %d at %s", a.Order, a.Outcome, a.Attempt, m.name)
				return
			}
			d.ledger.attempted(n, now, a.Attempt, a.Outcome == "handled")
			if about, text := d.stories.attempted(a, m.name, now); about != "" {
				d.screen.say(about, "%s", text)
			}
			if a.Outcome == "handled" && !d.first {
				d.first = true
				d.screen.say("handled", "%s, the first order, %.1fs after the start", a.Order, now.Sub(d.screen.began).Seconds())
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) readDead(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return d.dead.read(ctx, func(l *deadLetter) {
		if n, ok := orderNumber(l.order); ok {
			d.ledger.buried(n)
		}
		if text := d.stories.buried(l); text != "" {
			d.screen.say("dead", "%s", text)
		}
	})
}

// askLimit bounds a question to the broker.
const askLimit = 5 * time.Second

// grace is how long after a message's settling all that comes of it is seen: the delay of a retry, and a look at the files.
const grace = 10 * time.Second

// ask reads every member. Whatever nobody touched since before is done or lost; sure is false when that cannot be told.
func (d *demo) ask(ctx context.Context) (before time.Time, sure bool) {
	before, sure = time.Now().Add(-grace), true
	d.rows, d.inFlight = make([]row, 0, len(d.members)), 0
	owned := map[int32]bool{}
	oldest := time.Duration(0)
	for _, m := range d.members {
		s, err := m.ask(ctx)
		switch {
		case m.ended():
			d.rows = append(d.rows, row{member: m.name, silent: "has left"})
			continue
		case err != nil:
			d.rows, sure = append(d.rows, row{member: m.name, silent: "does not answer"}), false
			continue
		}
		if len(d.rows) == 0 {
			d.pid = s.pid()
		}
		r := m.row(s)
		d.rows = append(d.rows, r)
		d.inFlight += r.inFlight
		oldest = max(oldest, r.oldest)
		for i := range s.Streams {
			for _, q := range s.Streams[i].Queues {
				if q.owned() {
					owned[q.ID] = true
				}
				if q.Lag != 0 && q.Messages == 0 {
					sure = false // something waits that nobody has looked at
				}
			}
		}
	}
	return before.Add(-oldest), sure && len(owned) == queues
}
