package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Dialect is the form of JSON that a body is written in (remoting-protocol.md 3.1). Both are read.
type Dialect uint8

const (
	// Fastjson is what Java writes by default: whole numbers as keys stand without quotes.
	Fastjson Dialect = iota
	// Standard is JSON that any parser reads, except that keys which are queues stay bare objects: Go clients read no
	// other form of those.
	Standard
)

// keyMark begins the text of a typed key on its way through encoding/json, which writes it as "\u0000…". No topic, group or
// property name begins with U+0000.
const keyMark = "\x00"

const escapedMark = `\u0000`

// EncodeBody returns v as compact JSON. v is one of this package's body types, or a pointer to one.
func EncodeBody(v any, d Dialect) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("%w: body %T: %w", ErrNotEncodable, v, err)
	}
	out := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if !bytes.Contains(out, []byte(escapedMark)) {
		return out, nil
	}
	return bareKeys(out, d)
}

// bareKeys turns marked keys into the form of the dialect: "\u0000{…}" becomes the object itself, "\u000012" the number,
// bare or quoted.
func bareKeys(text []byte, d Dialect) ([]byte, error) {
	p := jsonScanner{s: string(text)}
	w := keyWriter{src: &p, out: make([]byte, 0, len(text)), key: func(out []byte, raw, key string) []byte {
		body, marked := cutMark(key)
		switch {
		case !marked:
			return append(out, raw...)
		case body != "" && body[0] == '{':
			return append(out, body...)
		case d == Standard:
			return appendJSONString(out, body)
		}
		return append(out, body...)
	}}
	err := w.value(0)
	return w.out, err
}

func cutMark(key string) (string, bool) {
	if len(key) > len(keyMark) && key[:len(keyMark)] == keyMark {
		return key[len(keyMark):], true
	}
	return key, false
}

// DecodeBody reads JSON in either dialect into v, a pointer to one of this package's body types. Unknown members are
// ignored. The error wraps ErrMalformed, or ErrTooLarge when the text has more objects than any real body of its size, which
// would take many times its memory.
func DecodeBody(body []byte, v any) error {
	if n := countObjects(body); n > len(body)/bytesPerObject+someObjects {
		return fmt.Errorf("body %T is %w: %d objects in %d bytes", v, ErrTooLarge, n, len(body))
	}
	err := json.Unmarshal(body, v)
	if err == nil {
		return nil
	}
	std, normErr := Normalize(body)
	if normErr != nil {
		return fmt.Errorf("body %T: %w", v, normErr)
	}
	if err := json.Unmarshal(std, v); err != nil {
		return fmt.Errorf("%w: body %T: %w", ErrMalformed, v, err)
	}
	return nil
}

const (
	bytesPerObject = 16 // the smallest real one is {"groupName":"P"}
	someObjects    = 64
)

// countObjects counts the braces outside of strings.
func countObjects(body []byte) int {
	n, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case !quoted && c == '{':
			n++
		}
	}
	return n
}

// Normalize returns fastjson's text as standard JSON: a bare number or word as a key becomes a string, a bare object as a
// key becomes a string that holds its text. White space between tokens is dropped.
func Normalize(body []byte) ([]byte, error) {
	p := jsonScanner{s: string(body)}
	w := keyWriter{src: &p, bare: true, out: make([]byte, 0, len(body)+len(body)/8), key: func(out []byte, raw, key string) []byte {
		if raw != "" {
			return append(out, raw...)
		}
		return appendJSONString(out, key)
	}}
	if err := w.value(0); err != nil {
		return nil, err
	}
	if p.peek() != 0 || p.i != len(p.s) {
		return nil, p.fail("text after the value")
	}
	return w.out, nil
}

// keyWriter copies JSON and rewrites its keys.
type keyWriter struct {
	src  *jsonScanner
	out  []byte
	bare bool // keys may be bare words, numbers and objects
	// key writes a key. raw is its text with quotes, "" when it was bare; key its content.
	key func(out []byte, raw, key string) []byte
}

func (w *keyWriter) value(depth int) error {
	p := w.src
	if depth > maxJSONDepth {
		return p.fail("nested too deep")
	}
	switch p.peek() {
	case '{':
		return w.object(depth)
	case '[':
		return w.list(depth)
	}
	start := p.i
	if err := p.skip(depth); err != nil {
		return err
	}
	w.out = append(w.out, p.s[start:p.i]...)
	return nil
}

func (w *keyWriter) object(depth int) error {
	p := w.src
	p.i++
	w.out = append(w.out, '{')
	for first := true; p.peek() != '}'; first = false {
		if !first {
			if p.peek() != ',' {
				return p.fail("no comma or brace after a member")
			}
			p.i++
			w.out = append(w.out, ',')
		}
		if err := w.member(depth); err != nil {
			return err
		}
	}
	p.i++
	w.out = append(w.out, '}')
	return nil
}

func (w *keyWriter) member(depth int) error {
	p := w.src
	p.space()
	start := p.i
	switch c := p.peek(); {
	case c == '"':
		key, err := p.str()
		if err != nil {
			return err
		}
		w.out = w.key(w.out, p.s[start:p.i], key)
	case w.bare:
		if err := p.skipKey(depth); err != nil {
			return err
		}
		w.out = w.key(w.out, "", p.s[start:p.i])
	default:
		return p.fail("no member name")
	}
	if p.peek() != ':' {
		return p.fail("no colon after a member's name")
	}
	p.i++
	w.out = append(w.out, ':')
	return w.value(depth + 1)
}

// skipKey passes over a bare key: an object (whose own keys are quoted), a number or a word.
func (p *jsonScanner) skipKey(depth int) error {
	if p.peek() == '{' {
		return p.skip(depth)
	}
	return p.word()
}

func (w *keyWriter) list(depth int) error {
	p := w.src
	p.i++
	w.out = append(w.out, '[')
	for first := true; p.peek() != ']'; first = false {
		if !first {
			if p.peek() != ',' {
				return p.fail("no comma or bracket after an element")
			}
			p.i++
			w.out = append(w.out, ',')
		}
		if err := w.value(depth + 1); err != nil {
			return err
		}
	}
	p.i++
	w.out = append(w.out, ']')
	return nil
}
