package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// record is what the demo reads of a member's log.
type record struct {
	Time    time.Time `json:"time"`
	Level   string    `json:"level"`
	Msg     string    `json:"msg"`
	Plugin  string    `json:"plugin"`
	Version string    `json:"version"`
	PID     int       `json:"pid"`
	Took    any       `json:"took"` // text of a plugin's start, nanoseconds of an attempt
	Queue   string    `json:"queue"`
	Attempt int       `json:"attempt"`
	Verdict string    `json:"verdict"`
	Type    string    `json:"error_type"`
	Error   string    `json:"error"`
	Trace   string    `json:"trace_id"`
	Dropped int       `json:"dropped_lines"`
	Cause   string    `json:"cause"`
	Fields  struct {
		Order   string `json:"order"`
		Attempt int    `json:"attempt"`
	} `json:"fields"`
}

// read takes one line of a member's log. It runs on the goroutine that reads the member's output.
func (m *member) read(line string) {
	var r record
	if json.Unmarshal([]byte(line), &r) != nil {
		m.d.screen.say(m.name, "%s", line) // not a log line: the last words of a process that cannot start
		return
	}
	t := m.d.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	switch r.Msg {
	case "order handled":
		t.handledOrder(m, &r)
	case "delivery failed":
		t.failedOrder(m, &r)
	case "plugin ready":
		m.d.screen.say("plugin", "%s: %s %s ready in %v, pid %d", m.name, r.Plugin, r.Version, r.Took, r.PID)
	case "queue assigned":
		t.queue(t.assigned, &r)
	case "queue revoked, draining":
		t.queue(t.revoked, &r)
	case "queue released":
		t.queue(t.released, &r)
		t.committed++
	case "queue released without a confirmed commit; its last messages will come again":
		t.unconfirmed++
		m.warn(line, &r)
	case "plugin writes more log lines than are kept":
		t.dropped += r.Dropped
	default:
		if (r.Level == "WARN" || r.Level == "ERROR") && r.Cause != "stopped" { // a lane that ends because streamd stops is no news
			m.warn(line, &r)
		}
	}
	if strings.HasPrefix(r.Msg, "ready") {
		m.readyOnce()
	}
}

func (t *tally) queue(in map[string]time.Time, r *record) {
	if strings.HasPrefix(r.Queue, topic+"/") { // the retry topic's queue is not shown
		in[r.Queue] = r.Time
	}
}

func (t *tally) handledOrder(m *member, r *record) {
	id := r.Fields.Order
	if _, again := t.handled[id]; again {
		t.duplicates++
		m.d.screen.say("twice", "%s attempt %d at %s", id, r.Fields.Attempt, m.name)
		return
	}
	t.handled[id] = struct{}{}
	if t.shown[id] {
		delete(t.shown, id)
		m.d.screen.say("handled", "%s attempt %d at %s", id, r.Fields.Attempt, m.name)
	}
}

// failedOrder shows a failed attempt. streamd logs ten of a kind a minute, so the screen stays readable.
func (t *tally) failedOrder(m *member, r *record) {
	id, why, _ := strings.Cut(strings.TrimPrefix(r.Error, "order "), ": ")
	if r.Verdict == "dead_letter" {
		t.dead++
		m.d.screen.say("dead", "%s attempt %d %q → trace %s", id, r.Attempt, why, r.Trace)
		return
	}
	t.retries++
	t.shown[id] = true
	m.d.screen.say("retry", "%s attempt %d %q (%s), again in 1s", id, r.Attempt, why, r.Type)
}

// warn shows a line of the log that is not of the usual run of things.
func (m *member) warn(line string, r *record) {
	var all map[string]any
	if json.Unmarshal([]byte(line), &all) != nil {
		return // read before: cannot happen
	}
	var rest []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if k != "time" && k != "level" && k != "msg" {
			rest = append(rest, fmt.Sprintf("%s=%v", k, all[k]))
		}
	}
	text := r.Msg + "  " + strings.Join(rest, " ")
	if len(text) > 300 {
		text = text[:300] + "…"
	}
	m.d.screen.say(strings.ToLower(r.Level), "%s: %s", m.name, text)
}
