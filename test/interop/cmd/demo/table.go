package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// table reads every member and draws a row for each. A member that does not answer has a row that says so.
func (d *demo) table(ctx context.Context) {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, " MEMBER\tQUEUES\tRATE\tLAG\tOLDEST\tIN FLIGHT\tPLUGINS")
	var total row
	for _, m := range d.members {
		s, err := m.ask(ctx)
		if err != nil {
			fmt.Fprintf(w, " %s\tdoes not answer\t\t\t\t\t\n", m.name)
			continue
		}
		r := m.row(s)
		total.inFlight += r.inFlight
		total.retries += r.retries
		total.dead += r.dead
		if m == d.members[0] {
			d.pid = r.pid
		}
		fmt.Fprintf(w, " %s\t%s\t%.0f/s\t%d\t%s\t%d\t%s\n", m.name, r.queues, r.rate, r.lag, r.oldest.Round(100*time.Millisecond), r.inFlight, r.plugins)
		if r.hold != "" {
			fmt.Fprintf(w, " \t%s\t\t\t\t\t\n", r.hold)
		}
	}
	d.inFlight = total.inFlight
	handled, duplicates, _ := d.tally.counts()
	_ = w.Flush() // into memory
	fmt.Fprintf(&text, " handled %d  retried %d  dead %d  duplicates %d", handled, total.retries, total.dead, duplicates)
	d.screen.draw(strings.Split(text.String(), "\n"))
}
