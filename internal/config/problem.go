package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Position says where a value was written.
type Position struct {
	Source       string // a file's path, "environment STREAMD_X", "--set streams[orders].batch.max", "--log-level"
	Line, Column int    // from 1; 0 = the source has no lines
}

// String is file:line:col, or the source alone.
func (p Position) String() string {
	if p.Line == 0 {
		return p.Source
	}
	return fmt.Sprintf("%s:%d:%d", p.Source, p.Line, p.Column)
}

// Compare orders positions by source, line and column.
func (p Position) Compare(o Position) int {
	return cmp.Or(strings.Compare(p.Source, o.Source), p.Line-o.Line, p.Column-o.Column)
}

// Problem is one fault of a configuration: where, what, and what to write instead.
type Problem struct {
	Where Position
	What  string
	Try   string // may be empty
	Said  bool   // Try is a plugin's own advice
	Away  bool   // the config is right, and a file that it names cannot be read: it may come
}

// String is one line: "file:line:col: what; try ...", or "; write ...", "; keep ..." where that is plainer.
func (p Problem) String() string {
	s := p.What
	if w := p.Where.String(); w != "" {
		s = w + ": " + s
	}
	if p.Try != "" {
		s += "; " + p.advice()
	}
	return s
}

// advice is what to do about it. What a plugin's author wrote as a sentence stands as it is; what names a value, as the SDK
// does, is made one.
func (p Problem) advice() string {
	first, _, sentence := strings.Cut(p.Try, " ")
	if p.Said && sentence && !strings.HasPrefix(first, `"`) && !strings.HasSuffix(first, ":") && !slices.Contains([]string{"a", "at", "one"}, first) {
		return p.Try
	}
	return advice(p.Try)
}

// advice makes a sentence of a hint. Hints are what to write, or what to do in words; the verb follows from their form.
func advice(hint string) string {
	hint = strings.ReplaceAll(hint, ", or removing ", ", or remove ")
	first, rest, _ := strings.Cut(hint, " ")
	switch {
	case strings.HasPrefix(hint, "one of the two"), strings.HasPrefix(hint, "one entry"):
		return "keep " + hint
	case strings.HasSuffix(first, ":"), strings.HasSuffix(first, "="): // a key
		return "write " + hint
	case slices.Contains([]string{"a", "at", "up", "keys", "letters,", "spaces", "two", "-c"}, first):
		return "write " + hint
	case first == "removing":
		return "remove " + strings.Replace(rest, ", or ", ", or write ", 1)
	case first == "moving":
		return "move " + rest
	case first == "correcting":
		return "correct " + rest
	case first == "setting":
		return "set " + strings.Replace(rest, ", or ", ", or write ", 1)
	}
	return "try " + hint
}

// InvalidError carries every problem found. The caller prints it as it is and ends with the exit code of bad config.
type InvalidError struct{ Problems []Problem }

// Error is one line a problem.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Away tells that nothing is wrong but files that cannot be read: the same config may work later.
func (e *InvalidError) Away() bool {
	return !slices.ContainsFunc(e.Problems, func(p Problem) bool { return !p.Away })
}

// UnreadableError says that a file named on the command line could not be read: a fault of the environment, not of the
// configuration.
type UnreadableError struct {
	Path string
	Err  error
	Try  string // what to do about it; may be empty
}

// Error says which file, why, and what to do.
func (e *UnreadableError) Error() string {
	text := fmt.Sprintf("reading config %s: %v", e.Path, e.Err)
	if e.Try != "" {
		text += "; " + e.Try
	}
	return text
}

// Unwrap gives the cause.
func (e *UnreadableError) Unwrap() error { return e.Err }

// problems collects faults, each place and text once.
type problems struct {
	list     []Problem
	warnings []Problem
	seen     map[Problem]bool
}

func (ps *problems) add(where Position, try, format string, args ...any) {
	ps.put(Problem{Where: where, What: fmt.Sprintf(format, args...), Try: try})
}

func (ps *problems) put(p Problem) {
	if ps.seen[p] {
		return
	}
	if ps.seen == nil {
		ps.seen = map[Problem]bool{}
	}
	ps.seen[p] = true
	ps.list = append(ps.list, p)
}

// err returns the collected faults in the order of the sources, then of the lines.
func (ps *problems) err(order []string) error {
	if len(ps.list) == 0 {
		return nil
	}
	return &InvalidError{Problems: ps.sorted(order)}
}

// warn notes what is no fault of the config for certain.
func (ps *problems) warn(where Position, try, format string, args ...any) {
	ps.warnings = append(ps.warnings, Problem{Where: where, What: fmt.Sprintf(format, args...), Try: try})
}

func (ps *problems) sorted(order []string) []Problem { return inOrder(ps.list, order) }

// inOrder sorts by the order of the sources, then of the lines.
func inOrder(list []Problem, order []string) []Problem {
	rank := make(map[string]int, len(order))
	for i, s := range order {
		if _, ok := rank[s]; !ok {
			rank[s] = i - len(order) // before all that are no files
		}
	}
	slices.SortStableFunc(list, func(a, b Problem) int {
		x, y := a.Where, b.Where
		return cmp.Or(rank[x.Source]-rank[y.Source], x.Compare(y))
	})
	return list
}
