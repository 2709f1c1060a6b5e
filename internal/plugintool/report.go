package plugintool

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/streamd/streamd/internal/plain"
)

// Text writes a report for people: a line a message, its outputs and logs below it. streamd's own log lines are told apart, and
// left out where they tell of nothing wrong, unless all are wanted.
func (r *Report) Text(w io.Writer, all bool) error {
	for _, d := range r.Diagnostics {
		fmt.Fprintf(w, "config: %s\n", d)
	}
	counts := map[string]int{}
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		counts[o.Verdict]++
		fmt.Fprintf(w, "%d %s", o.N, o.Verdict)
		if o.DelayMS > 0 {
			fmt.Fprintf(w, " in %dms", o.DelayMS)
		}
		if o.Class != "" {
			fmt.Fprintf(w, " %s", o.Class)
		}
		if o.Text != "" {
			fmt.Fprintf(w, ": %s", indented(o.Text))
		}
		fmt.Fprintf(w, " (%.1f ms)\n", o.TookMS)
		for _, out := range o.Outputs {
			topic := out.Topic
			if topic == "" {
				topic = "(outputs.topic)"
			}
			fmt.Fprintf(w, "    emits %s %s\n", topic, out.Body)
		}
		for _, l := range o.Logs {
			fmt.Fprintf(w, "    log %s %s\n", l.Level, indented(l.Text))
		}
	}
	for i := range r.Logs {
		l := &r.Logs[i]
		if l.own() && !all {
			continue
		}
		whose := "log"
		if l.From == FromStreamd {
			whose = "streamd"
		}
		fmt.Fprintf(w, "%s %s %s\n", whose, l.Level, indented(l.Text))
	}
	if _, err := fmt.Fprintf(w, "%s: %s\n", plain.Count(len(r.Outcomes), "message"), sum(counts)); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// sum counts verdicts: those that every trial tells, and others that there were.
func sum(counts map[string]int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d ack, %d retry, %d reject, %d lost", counts["ack"], counts["retry"], counts["reject"], counts["lost"])
	for _, rare := range []string{"unread", "untouched"} {
		if n := counts[rare]; n > 0 {
			fmt.Fprintf(&text, ", %d %s", n, rare)
		}
	}
	return text.String()
}

// indented moves what follows the first line of a text to the right, so that nobody takes it for lines of the report, and
// takes out what a terminal would obey.
func indented(text string) string {
	text = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, text)
	return strings.ReplaceAll(text, "\n", "\n        ")
}

// Failed says whether a message was lost or unreadable: what makes a trial fail. A retry is a verdict, not a failure.
func (r *Report) Failed() error {
	for i := range r.Outcomes {
		if v := r.Outcomes[i].Verdict; v == "lost" || v == "unread" {
			return fmt.Errorf("message %d was %s: %s", r.Outcomes[i].N, v, r.Outcomes[i].Text)
		}
	}
	return nil
}
