package wire

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxJSONDepth bounds the nesting that a scanner follows; real headers and bodies nest less than ten deep.
const maxJSONDepth = 64

// jsonScanner walks JSON text without building values.
type jsonScanner struct {
	s string
	i int
}

func (p *jsonScanner) fail(what string) error {
	return fmt.Errorf("%w: JSON at byte %d: %s", ErrMalformed, p.i, what)
}

func (p *jsonScanner) space() {
	for p.i < len(p.s) {
		switch p.s[p.i] {
		case ' ', '\t', '\n', '\r':
			p.i++
		default:
			return
		}
	}
}

// peek returns the next byte that is no white space, 0 at the end.
func (p *jsonScanner) peek() byte {
	p.space()
	if p.i == len(p.s) {
		return 0
	}
	return p.s[p.i]
}

// object walks an object's members. member is called with each key and has to consume the value.
func (p *jsonScanner) object(member func(key string) error) error {
	if p.peek() != '{' {
		return p.fail("no object")
	}
	p.i++
	if p.peek() == '}' {
		p.i++
		return nil
	}
	for {
		key, err := p.str()
		if err != nil {
			return err
		}
		if p.peek() != ':' {
			return p.fail("no colon after a member's name")
		}
		p.i++
		if err := member(key); err != nil {
			return err
		}
		switch p.peek() {
		case ',':
			p.i++
		case '}':
			p.i++
			return nil
		default:
			return p.fail("no comma or brace after a member")
		}
	}
}

// str reads a string. One without escapes is a part of the scanned text.
func (p *jsonScanner) str() (string, error) {
	if p.peek() != '"' {
		return "", p.fail("no string")
	}
	start := p.i + 1
	for i := start; i < len(p.s); i++ {
		switch p.s[i] {
		case '"':
			p.i = i + 1
			return p.s[start:i], nil
		case '\\':
			return p.escaped(start)
		}
	}
	return "", p.fail("string without end")
}

// escaped reads the rest of a string that has escapes and begins at start.
func (p *jsonScanner) escaped(start int) (string, error) {
	end := start
	for ; end < len(p.s) && p.s[end] != '"'; end++ {
		if p.s[end] == '\\' {
			end++
		}
	}
	if end >= len(p.s) {
		return "", p.fail("string without end")
	}
	raw := p.s[start:end]
	var b strings.Builder
	b.Grow(len(raw))
	for raw != "" {
		cut := strings.IndexByte(raw, '\\')
		if cut < 0 {
			b.WriteString(raw)
			break
		}
		b.WriteString(raw[:cut])
		r, n, ok := unescape(raw[cut:])
		if !ok {
			return "", p.fail("bad escape in a string")
		}
		b.WriteRune(r)
		raw = raw[cut+n:]
	}
	p.i = end + 1
	return b.String(), nil
}

// unescape reads one escape at the start of s and returns its character and its length in s.
func unescape(s string) (rune, int, bool) {
	if len(s) < 2 {
		return 0, 0, false
	}
	switch c := s[1]; c {
	case '"', '\\', '/', '\'':
		return rune(c), 2, true
	case 'b':
		return '\b', 2, true
	case 'f':
		return '\f', 2, true
	case 'n':
		return '\n', 2, true
	case 'r':
		return '\r', 2, true
	case 't':
		return '\t', 2, true
	case 'u':
		return unescapeUnicode(s)
	}
	return 0, 0, false
}

func unescapeUnicode(s string) (rune, int, bool) {
	first, ok := hexUnit(s)
	if !ok {
		return 0, 0, false
	}
	if !utf16.IsSurrogate(first) {
		return first, 6, true
	}
	if second, ok := hexUnit(s[6:]); ok {
		if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
			return r, 12, true
		}
	}
	return utf8.RuneError, 6, true
}

// hexUnit reads the \uXXXX at the start of s.
func hexUnit(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(n), err == nil
}

// text reads a value of any type as text: a string's content, a number or word as it stands, the text of an object or
// list. null is told apart.
func (p *jsonScanner) text() (value string, null bool, err error) {
	if p.peek() == '"' {
		value, err = p.str()
		return value, false, err
	}
	start := p.i
	if err := p.skip(0); err != nil {
		return "", false, err
	}
	if value = p.s[start:p.i]; value == "null" {
		return "", true, nil
	}
	return value, false, nil
}

// int32 reads a number, quoted or not; null is 0.
func (p *jsonScanner) int32() (int32, error) {
	value, null, err := p.text()
	if err != nil || null {
		return 0, err
	}
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return 0, p.fail("no 32 bit number")
	}
	return int32(n), nil
}

// skip passes over one value.
func (p *jsonScanner) skip(depth int) error {
	if depth > maxJSONDepth {
		return p.fail("nested too deep")
	}
	switch p.peek() {
	case '"':
		_, err := p.str()
		return err
	case '{':
		return p.object(func(string) error { return p.skip(depth + 1) })
	case '[':
		return p.skipList(depth)
	}
	return p.word()
}

func (p *jsonScanner) skipList(depth int) error {
	p.i++
	if p.peek() == ']' {
		p.i++
		return nil
	}
	for {
		if err := p.skip(depth + 1); err != nil {
			return err
		}
		switch p.peek() {
		case ',':
			p.i++
		case ']':
			p.i++
			return nil
		default:
			return p.fail("no comma or bracket after an element")
		}
	}
}

// word passes over a number, true, false or null.
func (p *jsonScanner) word() error {
	start := p.i
	for p.i < len(p.s) && isWordByte(p.s[p.i]) {
		p.i++
	}
	if p.i == start {
		return p.fail("no value")
	}
	return nil
}

func isWordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '+' || c == '.'
}

// appendJSONString appends s as a JSON string. Control characters are escaped as Java does; what is beyond ASCII stays.
func appendJSONString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}
