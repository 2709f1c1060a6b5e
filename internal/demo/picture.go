package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// row is one member in the picture.
type row struct {
	member   string
	silent   string // why nothing is known of it
	queues   string
	rate     float64
	lag      int64
	oldest   time.Duration
	inFlight int
	plugin   string
	hold     string // why it does not go on
}

// columns of the table, and the order in which a narrow terminal loses them.
func columns() (names []string, firstToGo []int) {
	return []string{"MEMBER", "QUEUES", "RATE", "LAG", "OLDEST", "IN FLIGHT", "PLUGIN"}, []int{4, 5, 6, 3, 2}
}

func (r *row) cells() []string {
	if r.silent != "" {
		return []string{r.member, r.silent, "", "", "", "", ""}
	}
	return []string{
		r.member, r.queues, fmt.Sprintf("%.0f/s", r.rate), grouped(int(r.lag)), fmt.Sprintf("%.1fs", r.oldest.Seconds()), grouped(r.inFlight), r.plugin,
	}
}

// draw makes the picture: a row a member, and the sums. No line is longer than width, if that leaves room for anything.
func draw(rows []row, t totals, width int) []string {
	lines := table(rows, width)
	sums := []string{
		"handled " + grouped(t.handled), "retried " + grouped(t.retried), "dead " + grouped(t.dead),
		fmt.Sprintf("lost %d", t.lost), fmt.Sprintf("duplicates %d", t.duplicates),
	}
	return append(lines, fill(sums, width)...)
}

// table lines up the columns that fit.
func table(rows []row, width int) []string {
	names, firstToGo := columns()
	all := [][]string{names}
	for i := range rows {
		all = append(all, rows[i].cells())
	}
	widths := make([]int, len(names))
	for _, cells := range all {
		for i, c := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	shown := []int{0, 1, 2, 3, 4, 5, 6}
	for _, gone := range firstToGo {
		sum := 0
		for _, i := range shown {
			sum += widths[i] + 2
		}
		if sum <= width {
			break
		}
		shown = slices.DeleteFunc(shown, func(i int) bool { return i == gone })
	}
	var lines []string
	for n, cells := range all {
		lines = append(lines, line(cells, widths, shown))
		if n > 0 && rows[n-1].hold != "" {
			lines = append(lines, "   "+rows[n-1].hold)
		}
	}
	return lines
}

// line writes one row: words to the left, numbers to the right.
func line(cells []string, widths, shown []int) string {
	var b strings.Builder
	for _, i := range shown {
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cells[i]))
		if numeric := i >= 2 && i <= 5; numeric {
			b.WriteString(" " + pad + cells[i] + " ")
		} else {
			b.WriteString(" " + cells[i] + pad + " ")
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// fill puts words into lines.
func fill(words []string, width int) []string {
	var lines []string
	current := ""
	for _, w := range words {
		if current != "" && len(current)+2+len(w) >= width {
			lines = append(lines, current)
			current = ""
		}
		if current == "" {
			current = " " + w
		} else {
			current += "  " + w
		}
	}
	return append(lines, current)
}

// grouped writes 14210 as 14,210.
func grouped(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// ranges writes the queues 0 1 2 5 as "Orders 0-2,5".
func ranges(ids []int32) string {
	if len(ids) == 0 {
		return "-"
	}
	slices.Sort(ids)
	var parts []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		if part := fmt.Sprint(ids[i]); i == j {
			parts = append(parts, part)
		} else {
			parts = append(parts, part+"-"+fmt.Sprint(ids[j]))
		}
		i = j + 1
	}
	return topic + " " + strings.Join(parts, ",")
}
