package brokersuite

import (
	"fmt"
	"strings"
)

// Deviation is a step in which two transcripts differ.
type Deviation struct {
	Step      string
	Want, Got []string // nil: the step is not there
}

// String shows both.
func (d Deviation) String() string {
	show := func(lines []string) string {
		if lines == nil {
			return "    (no such step)"
		}
		return "    " + strings.Join(lines, "\n    ")
	}
	return fmt.Sprintf("%s\n  want\n%s\n  got\n%s", d.Step, show(d.Want), show(d.Got))
}

// Compare lists the steps in which got differs from want.
func Compare(want, got *Transcript) (all []Deviation) {
	for _, s := range want.steps {
		if lines := got.lines(s.name); !sameLines(s.lines, lines) {
			all = append(all, Deviation{s.name, s.lines, lines})
		}
	}
	for _, s := range got.steps {
		if want.lines(s.name) == nil {
			all = append(all, Deviation{s.name, nil, s.lines})
		}
	}
	return all
}

func sameLines(want, got []string) bool {
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if want[i] != got[i] && !bothRemarks(want[i], got[i]) {
			return false
		}
	}
	return true
}

// remarkException stands for the text of a Java exception, which every remark is as good as.
const remarkException = "remark <exception>"

func bothRemarks(want, got string) bool {
	return want == remarkException && strings.HasPrefix(got, "remark ")
}

// Differing is the text of those steps of got that differ from want.
func Differing(want, got *Transcript) string {
	own := new(Transcript)
	for _, d := range Compare(want, got) {
		if d.Got != nil {
			own.steps = append(own.steps, step{d.Step, d.Got})
		}
	}
	if len(own.steps) == 0 {
		return ""
	}
	return own.Text()
}
