package brokersuite

import (
	"fmt"
	"strings"
)

// Transcript is what a server answered in a scenario, step by step.
type Transcript struct {
	steps []step
}

// step is one named answer, as lines.
type step struct {
	name  string
	lines []string
}

func (t *Transcript) add(name string, lines []string) error {
	if t.lines(name) != nil {
		return fmt.Errorf("there are two steps %q", name)
	}
	if len(lines) == 0 {
		lines = []string{"nothing"}
	}
	t.steps = append(t.steps, step{name, lines})
	return nil
}

func (t *Transcript) lines(name string) []string {
	for _, s := range t.steps {
		if s.name == name {
			return s.lines
		}
	}
	return nil
}

// Text is the form in which transcripts are kept: a step's name in brackets, its lines indented.
func (t *Transcript) Text() string {
	var b strings.Builder
	for _, s := range t.steps {
		fmt.Fprintf(&b, "[%s]\n", s.name)
		for _, l := range s.lines {
			fmt.Fprintf(&b, "  %s\n", l)
		}
	}
	return b.String()
}

// Parse reads a transcript's text.
func Parse(text string) (*Transcript, error) {
	t := new(Transcript)
	for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		switch {
		case line == "":
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			t.steps = append(t.steps, step{name: line[1 : len(line)-1]})
		case strings.HasPrefix(line, "  ") && len(t.steps) > 0:
			last := &t.steps[len(t.steps)-1]
			last.lines = append(last.lines, line[2:])
		default:
			return nil, fmt.Errorf("line %d of a transcript is neither a step nor part of one: %q", n+1, line)
		}
	}
	return t, nil
}
