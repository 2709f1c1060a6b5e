package deadletters

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/streamd/streamd/internal/plain"
)

// Listing is what dlq list shows.
type Listing struct {
	*Box
	Total   int64     `json:"total"`
	Letters []*Letter `json:"letters"` // those that died last first
	Notes   []string  `json:"notes"`
}

// Text writes the tables for people.
func (l *Listing) Text(w io.Writer) error {
	t := plain.NewTable(w)
	fmt.Fprintf(t, "GROUP\t%s\nDEAD LETTERS\t%d in %s\n\n", l.Group, l.Total, l.Topic)
	fmt.Fprintln(t, "BROKER\tQUEUE\tFIRST\tNEXT\tCOUNT")
	for _, q := range l.Queues {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\n", q.Broker, q.ID, q.Min, q.Max, q.Count)
	}
	if len(l.Letters) > 0 {
		fmt.Fprintln(t, "\nID\tDIED\tFROM\tKEYS\tATTEMPTS\tREASON\tMSG ID")
	}
	for _, one := range l.Letters {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", one.ID, one.Died.Format("2006-01-02 15:04:05"), orDash(one.OriginTopic), orDash(cut(strings.Join(one.Keys, " "), 40)),
			one.Attempts, orDash(cut(one.Reason.words(), 80)), orDash(one.OriginID))
	}
	for _, n := range l.Notes {
		fmt.Fprintf(t, "note: %s\n", n)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("writing the tables: %w", err)
	}
	return nil
}

// words is the reason in one line.
func (r *Reason) words() string {
	if r == nil {
		return ""
	}
	text := r.Text
	if r.Class != "" {
		text = r.Class + ": " + text
	}
	return text
}

// maxShown is how much of a body is shown to people.
const maxShown = 4 << 10

// Text writes one dead letter for people.
func (l *Letter) Text(w io.Writer) error {
	body, err := l.Body()
	if err != nil {
		return err
	}
	t := plain.NewTable(w)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(t, "%s\t%s\n", name, printable(value))
		}
	}
	line("ID", l.ID)
	line("PLACE", fmt.Sprintf("%s@%d", l.Queue, l.Offset))
	line("FROM", l.OriginTopic)
	line("MSG ID", l.OriginID)
	line("UNIQUE KEY", l.UniqueKey)
	line("KEYS", strings.Join(l.Keys, " "))
	line("TAG", l.Tag)
	line("ATTEMPTS", strconv.Itoa(l.Attempts))
	line("BORN", l.Born.Format(time.RFC3339Nano))
	line("DIED", l.Died.Format(time.RFC3339Nano))
	line("TRACE", l.TraceID)
	line("REDRIVEN FROM", l.Redriven)
	if r := l.Reason; r != nil {
		line("REASON", r.words())
		line("FAILED", fmt.Sprintf("attempt %d, %s, at %s", r.Attempt, r.Verdict, r.Failed.Format(time.RFC3339Nano)))
		line("BY", strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s", r.Handler, r.Plugin, r.PluginVersion, r.Member)), " "))
	}
	properties := l.Properties()
	fmt.Fprintln(t, "\nPROPERTY\tVALUE")
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		line(printable(name), properties[name])
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return showBody(w, body)
}

// showBody writes what fits on a screen, and only what a terminal takes.
func showBody(w io.Writer, body []byte) error {
	shown := body[:min(len(body), maxShown)]
	for len(shown) < len(body) && len(shown) > 0 && !utf8.RuneStart(body[len(shown)]) {
		shown = shown[:len(shown)-1] // not in the midst of a character
	}
	rest := ""
	if len(shown) < len(body) {
		rest = fmt.Sprintf("\n… %s more; --raw writes all of them", plain.Count(len(body)-len(shown), "byte"))
	}
	text := string(shown)
	if !utf8.Valid(shown) {
		text, rest = "(not text; --raw writes it as it is)", ""
	}
	_, err := fmt.Fprintf(w, "\nBODY (%s)\n%s%s\n", plain.Count(len(body), "byte"), lines(text), rest)
	if err != nil {
		return fmt.Errorf("writing the body: %w", err)
	}
	return nil
}

// printable keeps control characters of a message away from the terminal; lines lets line breaks and tabs pass.
func printable(s string) string { return strings.Map(harmless, strings.ToValidUTF8(s, "\uFFFD")) }

func lines(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return harmless(r)
	}, s)
}

func harmless(r rune) rune {
	if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
		return '\uFFFD'
	}
	return r
}

func cut(s string, n int) string {
	s = printable(strings.Join(strings.Fields(s), " "))
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
