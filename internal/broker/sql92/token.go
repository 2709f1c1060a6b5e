package sql92

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

type kind uint8

// The kinds of tokens. Keywords and operators are their own text, in upper case.
const (
	end kind = iota
	word
	keyword
	symbol
	whole
	decimal
	quoted
)

// token is one token and where it begins.
type token struct {
	kind kind
	text string // of a string: without its quotes
	at   int
}

func (t token) is(text string) bool { return (t.kind == keyword || t.kind == symbol) && t.text == text }

func (t token) String() string {
	switch t.kind {
	case end:
		return "the end"
	case quoted:
		return "'" + strings.ReplaceAll(t.text, "'", "''") + "'"
	default:
		return t.text
	}
}

type lexer struct {
	text string
	pos  int
}

// next returns the next token.
func (l *lexer) next() (token, error) {
	if err := l.skip(); err != nil {
		return token{}, err
	}
	at := l.pos
	if at == len(l.text) {
		return token{kind: end, at: at}, nil
	}
	switch c := l.text[at]; {
	case isNameStart(c):
		return l.name(), nil
	case isDigit(c), c == '.' && at+1 < len(l.text) && isDigit(l.text[at+1]):
		return l.number(), nil
	case c == '\'':
		return l.string()
	default:
		return l.symbol()
	}
}

func (l *lexer) symbol() (token, error) {
	at := l.pos
	for _, s := range []string{"<>", "<=", ">=", "<", ">", "=", "(", ")", ",", "+", "-"} {
		if strings.HasPrefix(l.text[at:], s) {
			l.pos += len(s)
			return token{symbol, s, at}, nil
		}
	}
	r, _ := utf8.DecodeRuneInString(l.text[at:])
	return token{}, l.fail(at, "%q has no meaning here%s", r, hint(l.text[at:]))
}

// hint says what those mean who write what is no part of the language.
func hint(rest string) string {
	switch {
	case strings.HasPrefix(rest, "!="):
		return "; write <> for not equal"
	case rest[0] == '"':
		return "; strings stand in single quotes"
	case rest[0] == '&', rest[0] == '|':
		return "; write AND, OR"
	case rest[0] == '.', rest[0] == ':':
		return "; names of properties in an expression have letters, digits, _ and $ only"
	default:
		return ""
	}
}

func (l *lexer) name() token {
	at := l.pos
	for l.pos < len(l.text) && (isNameStart(l.text[l.pos]) || isDigit(l.text[l.pos])) {
		l.pos++
	}
	text := l.text[at:l.pos]
	switch upper := strings.ToUpper(text); upper {
	case "NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS", "CONTAINS", "STARTSWITH", "ENDSWITH":
		return token{keyword, upper, at}
	}
	return token{word, text, at}
}

// number reads the longest number. A whole one begins with 0 only if it is 0.
func (l *lexer) number() token {
	at := l.pos
	l.digits()
	digits := l.pos
	point := l.pos < len(l.text) && l.text[l.pos] == '.'
	if point {
		l.pos++
		l.digits()
	}
	if exponent := l.exponent(); point || exponent {
		return token{decimal, l.text[at:l.pos], at}
	}
	if l.text[at] == '0' {
		l.pos = at + 1
		return token{whole, "0", at}
	}
	if l.pos < len(l.text) && l.text[l.pos]|0x20 == 'l' {
		l.pos++
	}
	return token{whole, l.text[at:digits], at}
}

func (l *lexer) digits() {
	for l.pos < len(l.text) && isDigit(l.text[l.pos]) {
		l.pos++
	}
}

func (l *lexer) exponent() bool {
	rest := l.text[l.pos:]
	if rest == "" || rest[0]|0x20 != 'e' {
		return false
	}
	n := 1
	if len(rest) > n && (rest[n] == '+' || rest[n] == '-') {
		n++
	}
	if len(rest) <= n || !isDigit(rest[n]) {
		return false
	}
	l.pos += n
	l.digits()
	return true
}

func (l *lexer) string() (token, error) {
	at := l.pos
	var b strings.Builder
	for rest := l.text[at+1:]; ; {
		before, after, ok := strings.Cut(rest, "'")
		if !ok {
			return token{}, l.fail(at, "the string that begins here has no end")
		}
		b.WriteString(before)
		if !strings.HasPrefix(after, "'") {
			l.pos = len(l.text) - len(after)
			return token{quoted, b.String(), at}, nil
		}
		b.WriteByte('\'')
		rest = after[1:]
	}
}

// skip passes over blanks and comments.
func (l *lexer) skip() error {
	for l.pos < len(l.text) {
		rest := l.text[l.pos:]
		switch {
		case strings.IndexByte(" \t\n\r\f", rest[0]) >= 0:
			l.pos++
		case strings.HasPrefix(rest, "--"):
			// Without an end of the line it is two signs: RocketMQ reads a = --5 as a = 5.
			n := strings.IndexAny(rest, "\r\n")
			if n < 0 {
				return nil
			}
			l.pos += n + 1
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest[2:], "*/")
			if n < 0 {
				return l.fail(l.pos, "the comment that begins here has no end")
			}
			l.pos += n + 4
		default:
			return nil
		}
	}
	return nil
}

// fail is an error at a position.
func (l *lexer) fail(at int, format string, args ...any) error {
	before := l.text[:at]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Errorf("line %d, column %d: %s", line, column, fmt.Sprintf(format, args...))
}

func isNameStart(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '$' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
