package produce

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/streamd/streamd/internal/rocketmq"
)

// Source gives the messages to send, one after another. It is not safe for concurrent use.
type Source interface {
	// Next returns io.EOF after the last message. An *InputError says that one message cannot be sent; the next may.
	Next() (*rocketmq.OutgoingMessage, error)
}

// InputError says that a line of the input is no message.
type InputError struct {
	Line int
	Err  error
}

// Error names the line.
func (e *InputError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap gives the cause.
func (e *InputError) Unwrap() error { return e.Err }

// maxLine bounds one line of input: RocketMQ's default limit of a message is 4 MiB, and Base64 takes a third more.
const maxLine = 8 << 20

var errNoTopic = errors.New("no topic; give --topic, or \"topic\" in the line")

type lineSource struct {
	scanner  *bufio.Scanner
	template Template
	json     bool
	line     int
}

// Lines reads one message a line: the line is the body. Empty lines are messages with an empty body only in JSON; here
// they are passed over.
func Lines(r io.Reader, t Template) Source { return newLineSource(r, t, false) }

// JSONLines reads one JSON object a line, with the keys body, body_base64, key, keys, tag, sharding_key, delay,
// properties and topic.
func JSONLines(r io.Reader, t Template) Source { return newLineSource(r, t, true) }

func newLineSource(r io.Reader, t Template, isJSON bool) Source {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), maxLine)
	return &lineSource{scanner: s, template: t, json: isJSON}
}

// Next reads the next line that is not empty.
func (s *lineSource) Next() (*rocketmq.OutgoingMessage, error) {
	for s.scanner.Scan() {
		s.line++
		line := bytes.TrimSuffix(s.scanner.Bytes(), []byte("\r"))
		if len(line) == 0 {
			continue
		}
		return s.message(bytes.Clone(line))
	}
	if err := s.scanner.Err(); err != nil {
		return nil, fmt.Errorf("reading input after line %d: %w", s.line, err)
	}
	return nil, io.EOF
}

func (s *lineSource) message(line []byte) (*rocketmq.OutgoingMessage, error) {
	var m *rocketmq.OutgoingMessage
	if s.json {
		var err error
		if m, err = s.template.parseLine(s.line, line); err != nil {
			return nil, &InputError{s.line, err}
		}
	} else {
		m = s.template.message(s.line, line)
	}
	if m.Topic == "" {
		return nil, &InputError{s.line, errNoTopic}
	}
	return m, nil
}

type generator struct {
	template    Template
	count, size int
	n           int
}

// Generate makes count messages of size bytes: sample orders in JSON, as plugins/orders reads them, with filler that differs
// from message to message. Where size is too small for an order it is filler alone.
func Generate(count, size int, t Template) Source {
	return &generator{template: t, count: count, size: size}
}

// Next makes the next message.
func (g *generator) Next() (*rocketmq.OutgoingMessage, error) {
	if g.n >= g.count {
		return nil, io.EOF
	}
	if g.template.Topic == "" {
		return nil, errNoTopic
	}
	g.n++
	return g.template.message(g.n, g.body()), nil
}

// body is an order of the wanted size.
func (g *generator) body() []byte {
	const end = `"}`
	body := fmt.Appendf(make([]byte, 0, g.size), `{"id":"G-%d","amount":%d.%02d,"filler":"`, g.n, 1+g.n%500, g.n%100)
	if len(body)+len(end) > g.size {
		return g.filler(body[:0], g.size)
	}
	return append(g.filler(body, g.size-len(end)), end...)
}

// filler appends to body up to a size.
func (g *generator) filler(body []byte, size int) []byte {
	for i := len(body); i < size; i++ {
		body = append(body, "abcdefghijklmnopqrstuvwxyz0123456789"[(i*7+g.n)%36])
	}
	return body
}
