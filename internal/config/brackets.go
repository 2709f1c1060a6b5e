package config

import (
	"strings"
)

// bracket is a "[" or "{" of a file.
type bracket struct {
	sign         byte
	line, column int // from 1
}

// openBracket finds the innermost bracket that is not closed, or closed by the wrong one: the YAML library names the place
// where it gave up, which may be the end of the file, or none.
func openBracket(text string) (bracket, bool) {
	var open []bracket
	for i, line := range strings.Split(text, "\n") {
		before := byte(0) // the last sign that is no space; 0 = none in this line
		for at := 0; at < len(line); at++ {
			sign := line[at]
			starts := before == 0 || strings.IndexByte(":-[{,?", before) >= 0 // a value may begin here
			switch {
			case sign == ' ' || sign == '\t':
				continue
			case sign == '#' && (at == 0 || line[at-1] == ' ' || line[at-1] == '\t'):
				at = len(line)
				continue
			case (sign == '"' || sign == '\'') && starts:
				at = quoteEnd(line, at)
			case (sign == '[' || sign == '{') && (starts || len(open) > 0):
				open = append(open, bracket{sign, i + 1, at + 1})
			case (sign == ']' || sign == '}') && len(open) > 0:
				if last := open[len(open)-1]; closing(last.sign) != sign {
					return last, true
				}
				open = open[:len(open)-1]
			}
			before = sign
		}
	}
	if len(open) == 0 {
		return bracket{}, false
	}
	return open[len(open)-1], true
}

func closing(sign byte) byte {
	if sign == '[' {
		return ']'
	}
	return '}'
}

// quoteEnd is where a quoted text ends: the index of its closing quote, or the end of the line.
func quoteEnd(line string, at int) int {
	quote := line[at]
	for i := at + 1; i < len(line); i++ {
		switch {
		case quote == '"' && line[i] == '\\':
			i++
		case line[i] == quote:
			return i
		}
	}
	return len(line)
}
