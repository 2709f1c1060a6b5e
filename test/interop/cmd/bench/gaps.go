package main

import (
	"fmt"
	"strings"
)

// delivery is one message at a handler.
type delivery struct {
	member int
	queue  string
	offset int64
	at     int64 // nanoseconds since 1970
}

// deliveries reads the "got QUEUE OFFSET NANOS" lines of a member.
func deliveries(member int, lines []string) ([]delivery, error) {
	var all []delivery
	for _, l := range lines {
		if !strings.HasPrefix(l, "got ") {
			continue
		}
		f := strings.Fields(l)
		if len(f) != 4 {
			return nil, fmt.Errorf("reading a delivery: %q", l)
		}
		n, err := numbers(f[2:], 2)
		if err != nil {
			return nil, err
		}
		all = append(all, delivery{member: member, queue: f[1], offset: n[0], at: n[1]})
	}
	return all, nil
}

// handOver is what an event did to the deliveries.
type handOver struct {
	gap        int64 // longest time without a delivery of a queue, nanoseconds, in the window
	moved      int64 // longest of those between deliveries of two members
	duplicates int   // deliveries of what had been delivered before
	lost       int   // offsets that nobody got, below the highest that somebody got
}

// judge looks at deliveries in order of time. Gaps count between two deliveries of one queue of which the later lies in
// the window from..to.
func judge(sorted []delivery, from, to int64) handOver {
	type place struct {
		queue  string
		offset int64
	}
	var h handOver
	seen, last, high := map[place]bool{}, map[string]delivery{}, map[string]int64{}
	for _, d := range sorted {
		if p, ok := last[d.queue]; ok && d.at >= from && p.at <= to {
			h.gap = max(h.gap, d.at-p.at)
			if p.member != d.member {
				h.moved = max(h.moved, d.at-p.at)
			}
		}
		last[d.queue] = d
		high[d.queue] = max(high[d.queue], d.offset)
		p := place{d.queue, d.offset}
		if seen[p] {
			h.duplicates++
		}
		seen[p] = true
	}
	total := 0
	for _, top := range high {
		total += int(top) + 1
	}
	h.lost = total - len(seen)
	return h
}

// shares tells how many queues each member served from a moment on; a queue that two served counts for none.
func shares(all []delivery, from int64, members int) []int {
	owner := map[string]int{}
	for _, d := range all {
		if d.at < from {
			continue
		}
		if m, ok := owner[d.queue]; ok && m != d.member {
			owner[d.queue] = -1
		} else if !ok {
			owner[d.queue] = d.member
		}
	}
	n := make([]int, members)
	for _, m := range owner {
		if m >= 0 {
			n[m]++
		}
	}
	return n
}
