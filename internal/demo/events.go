package demo

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
	Trace   string    `json:"trace_id"`
	Cause   string    `json:"cause"`
	Address string    `json:"address"` // of the embedded broker
	Data    string    `json:"data"`    // where it keeps its messages
}

// read takes one line of a member's log. It runs on the goroutine that reads the member's output.
func (m *member) read(line string) {
	if _, err := fmt.Fprintln(m.log, line); err != nil {
		m.d.screen.say(m.name, "its log cannot be kept: %v", err)
	}
	var r record
	if json.Unmarshal([]byte(line), &r) != nil {
		m.d.screen.say(m.name, "%s", line) // not a log line: the last words of a process that cannot start
		return
	}
	switch r.Msg {
	case "the embedded broker listens":
		data := r.Data
		if strings.HasPrefix(data, m.d.dir) {
			data += ", removed at the end"
		}
		m.d.screen.say("broker", "embedded in %s at %s, data %s", m.name, r.Address, data)
	case "delivery failed":
		m.d.stories.logged(r.Trace)
	case "plugin ready":
		m.d.screen.say("plugin", "%s: %s %s ready in %v", m.name, r.Plugin, r.Version, r.Took)
	case "queue assigned":
		m.d.handover.assign(r.Queue, r.Time)
	case "queue released":
		m.d.handover.release(r.Queue, r.Time, true)
	case "queue released without a confirmed commit; its last messages will come again":
		m.d.handover.release(r.Queue, r.Time, false)
		m.warn(line, &r)
	default:
		if (r.Level == "WARN" || r.Level == "ERROR") && r.Cause != "stopped" { // a lane that ends because streamd stops is no news
			m.warn(line, &r)
		}
	}
	if strings.HasPrefix(r.Msg, "ready") {
		m.readyOnce()
	}
}

// longest keeps a line of the log readable.
const longest = 300

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
	m.d.screen.say(strings.ToLower(r.Level), "%s: %s", m.name, cut(r.Msg+"  "+strings.Join(rest, " "), longest))
}
