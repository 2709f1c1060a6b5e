package groupview

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/streamd/streamd/internal/plain"
)

// Text writes the tables for people.
func (g *Group) Text(w io.Writer) error {
	t := plain.NewTable(w)
	fmt.Fprintf(t, "GROUP\t%s\n", g.Group)
	if g.Model != "" {
		fmt.Fprintf(t, "MODEL\t%s, a new group starts at %s\n", strings.ToLower(g.Model), g.StartFrom)
	}
	for _, s := range g.Subscriptions {
		fmt.Fprintf(t, "SUBSCRIBES\t%s  %s %s\n", s.Topic, s.Type, s.Expression)
	}
	fmt.Fprintf(t, "LAG\t%d\n\n", g.Lag)
	g.memberTable(t)
	g.queueTable(t)
	g.progressTable(t)
	g.headTable(t)
	for _, n := range g.Notes {
		fmt.Fprintf(t, "note: %s\n", n)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("writing the tables: %w", err)
	}
	return nil
}

// headTable lists the failed messages that others wait behind.
func (g *Group) headTable(w io.Writer) {
	none := true
	for i := range g.Members {
		for _, h := range g.Members[i].Heads {
			if none {
				fmt.Fprintln(w, "TRIED IN PLACE\tKEY\tATTEMPTS\tSINCE\tNEXT TRY\tLAST FAILURE")
				none = false
			}
			next := "now"
			if d := h.Next.Sub(g.Time); d > 0 {
				next = "in " + d.Round(time.Second).String()
			}
			if h.Blocked {
				next += ", blocked: its retries are used up"
			}
			fmt.Fprintf(w, "%s@%d\t%s\t%d\t%s\t%s\t%s\n", h.Queue, h.Offset, orDash(h.Key), h.Attempt, age(g.Time.Sub(h.Since)), next, h.Text)
		}
	}
	if !none {
		fmt.Fprintln(w)
	}
}

func (g *Group) memberTable(w io.Writer) {
	if len(g.Members) == 0 {
		fmt.Fprint(w, "no member is online\n\n")
		return
	}
	fmt.Fprintln(w, "MEMBER\tADDRESS\tCLIENT\tSTRATEGY\tPLUGINS")
	for _, m := range g.Members {
		client := m.Language + " " + m.Version
		if m.Streamd != "" {
			client = "streamd " + m.Streamd
		}
		var plugins []string
		for _, p := range m.Plugins {
			plugin := p.Name + " " + p.State
			if p.PID != 0 { // it has a process
				plugin += fmt.Sprintf(" (pid %d)", p.PID)
			}
			plugins = append(plugins, plugin)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", m.ClientID, m.Address, client, orDash(m.Strategy), orDash(strings.Join(plugins, ", ")))
	}
	fmt.Fprintln(w)
}

func (g *Group) queueTable(w io.Writer) {
	if len(g.Queues) == 0 {
		return
	}
	fmt.Fprintln(w, "TOPIC\tBROKER\tQUEUE\tOWNER\tCOMMITTED\tMAX\tLAG\tOLDEST\tIN FLIGHT\tSTATE\tWHY")
	for _, q := range g.Queues {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", q.Topic, q.Broker, q.ID, orDash(strings.Join(q.Owners, ", ")),
			number(q.Committed), number(q.Max), number(q.Lag), age(q.OldestAge), number(int64(q.InFlight)), q.State, q.Why)
	}
	fmt.Fprintln(w)
}

func (g *Group) progressTable(w io.Writer) {
	if len(g.Progress) == 0 {
		return
	}
	fmt.Fprintln(w, "each member handles every message; the queues above stand where their slowest member does")
	fmt.Fprintln(w, "TOPIC\tBROKER\tQUEUE\tMEMBER\tCOMMITTED\tMAX\tLAG")
	for _, p := range g.Progress {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", p.Topic, p.Broker, p.ID, p.Member, number(p.Committed), number(p.Max), number(p.Lag))
	}
	fmt.Fprintln(w)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func number(n int64) string {
	if n == Unknown {
		return "?"
	}
	return strconv.FormatInt(n, 10)
}

func age(d time.Duration) string {
	switch {
	case d == Unknown:
		return "?"
	case d == 0:
		return "-"
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
