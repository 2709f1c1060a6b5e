package fromgroup

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// width is where a comment goes to lines of its own.
const width = 120

// page is a config as it is written, line by line.
type page struct{ text strings.Builder }

// line writes a line of YAML with what is to be said of it.
func (p *page) line(indent int, text, comment string) {
	pad := strings.Repeat(" ", indent)
	switch comment = strings.Join(strings.Fields(clean(comment)), " "); {
	case comment == "":
		p.text.WriteString(pad + text + "\n")
	case len(pad)+len(text)+len(comment)+4 <= width:
		p.text.WriteString(pad + text + "  # " + comment + "\n")
	default:
		p.note(indent, comment)
		p.text.WriteString(pad + text + "\n")
	}
}

// off writes a line that is not in force.
func (p *page) off(indent int, text, comment string) { p.line(indent, "# "+text, comment) }

// note writes a comment, in as many lines as it takes.
func (p *page) note(indent int, comment string) {
	pad := strings.Repeat(" ", indent) + "#"
	for paragraph := range strings.Lines(clean(comment)) {
		line := pad
		for word := range strings.FieldsSeq(paragraph) {
			if len(line)+1+len(word) > width && line != pad {
				p.text.WriteString(line + "\n")
				line = pad
			}
			line += " " + word
		}
		p.text.WriteString(line + "\n")
	}
}

// clean takes out of a comment what no YAML file may hold: members choose their ids and settings.
func clean(comment string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' || r == unicode.ReplacementChar || r == '\ufeff' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(comment, " "))
}

func (p *page) blank() { p.text.WriteString("\n") }

var plain = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)

// scalar writes a text as one YAML scalar that stands for itself: quoted where it could be read as something else, and with
// what would be taken for a reference to the environment escaped.
func scalar(s string) string {
	words := []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
	if plain.MatchString(s) && !slices.Contains(words, strings.ToLower(s)) {
		return s
	}
	return reference(strings.ReplaceAll(s, "${", "$${"))
}

// reference writes a text that may hold ${env:…} or ${file:…}.
func reference(s string) string {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return strconv.Quote(s) // a text always encodes
	}
	var escaped strings.Builder
	for _, r := range strings.TrimSpace(out.String()) {
		if r >= 0x7f && r < 0xa0 || r == '\ufeff' || r == '\ufffe' || r == '\uffff' {
			fmt.Fprintf(&escaped, `\u%04x`, r) // JSON lets them be, YAML does not
			continue
		}
		escaped.WriteRune(r)
	}
	return escaped.String()
}

func list(all []string) string {
	quoted := make([]string, len(all))
	for i, s := range all {
		quoted[i] = scalar(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func number(n int) string { return strconv.Itoa(n) }
