package produce

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
)

// Template is what every message gets unless its own line says otherwise. In its texts {n} is the number of the message.
type Template struct {
	Topic       string
	Keys        []string
	Tag         string
	ShardingKey string
	Delay       Delay
	Properties  map[string]string
}

// Delay is when a message becomes visible: one of RocketMQ's 18 levels, or any duration (timer messages, broker 5.0+).
type Delay struct {
	Level int
	After time.Duration
}

// levels are RocketMQ's default delay levels (MessageStoreConfig.messageDelayLevel).
func levels() []time.Duration {
	const s, m, h = time.Second, time.Minute, time.Hour
	return []time.Duration{s, 5 * s, 10 * s, 30 * s, m, 2 * m, 3 * m, 4 * m, 5 * m, 6 * m, 7 * m, 8 * m, 9 * m, 10 * m, 20 * m, 30 * m, h, 2 * h}
}

// ParseDelay reads a level ("3") or a duration ("10s"). A duration that is one of the default levels is sent as that
// level, which brokers of all versions know.
func ParseDelay(text string) (Delay, error) {
	if text == "" {
		return Delay{}, nil
	}
	if n, err := strconv.Atoi(text); err == nil {
		if n < 1 || n > len(levels()) {
			return Delay{}, fmt.Errorf("delay level %d does not exist; write 1 to %d, or a duration such as 10s", n, len(levels()))
		}
		return Delay{Level: n}, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return Delay{}, fmt.Errorf("%q is no delay; write a level 1 to %d, or a duration such as 10s", text, len(levels()))
	}
	for i, l := range levels() {
		if l == d {
			return Delay{Level: i + 1}, nil
		}
	}
	return Delay{After: d}, nil
}

// message builds message n with a body from the template.
func (t *Template) message(n int, body []byte) *rocketmq.OutgoingMessage {
	number := strconv.Itoa(n)
	fill := func(s string) string { return strings.ReplaceAll(s, "{n}", number) }
	m := &rocketmq.OutgoingMessage{
		Topic: t.Topic, Tag: fill(t.Tag), ShardingKey: fill(t.ShardingKey), Body: body,
		DelayLevel: t.Delay.Level, Delay: t.Delay.After, Properties: make(map[string]string, len(t.Properties)+1),
	}
	for _, k := range t.Keys {
		m.Keys = append(m.Keys, fill(k))
	}
	for k, v := range t.Properties {
		m.Properties[k] = fill(v)
	}
	return m
}

// jsonLine is one message of a JSON-lines input.
type jsonLine struct {
	Topic       string            `json:"topic"`
	Body        json.RawMessage   `json:"body"`
	BodyBase64  string            `json:"body_base64"`
	Key         string            `json:"key"`
	Keys        []string          `json:"keys"`
	Tag         string            `json:"tag"`
	ShardingKey string            `json:"sharding_key"`
	Delay       json.RawMessage   `json:"delay"`
	Properties  map[string]string `json:"properties"`
}

var errTwoBodies = errors.New("body and body_base64 exclude each other")

// parseLine reads one JSON line over the template.
func (t *Template) parseLine(n int, line []byte) (*rocketmq.OutgoingMessage, error) {
	var l jsonLine
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return nil, fmt.Errorf("reading JSON: %w; a line is an object with the keys body, body_base64, key, keys, tag, sharding_key, delay, properties, topic", err)
	}
	body, err := l.body()
	if err != nil {
		return nil, err
	}
	m := t.message(n, body)
	if l.Delay != nil {
		d, err := ParseDelay(strings.Trim(string(l.Delay), `"`))
		if err != nil {
			return nil, err
		}
		m.DelayLevel, m.Delay = d.Level, d.After
	}
	override(&m.Topic, l.Topic)
	override(&m.Tag, l.Tag)
	override(&m.ShardingKey, l.ShardingKey)
	if l.Key != "" {
		l.Keys = append([]string{l.Key}, l.Keys...)
	}
	if len(l.Keys) > 0 {
		m.Keys = l.Keys
	}
	maps.Copy(m.Properties, l.Properties)
	return m, nil
}

func override(to *string, with string) {
	if with != "" {
		*to = with
	}
}

// body is the bytes to send: the text of a JSON string, any other JSON as it is written.
func (l *jsonLine) body() ([]byte, error) {
	if l.BodyBase64 != "" {
		if l.Body != nil {
			return nil, errTwoBodies
		}
		b, err := base64.StdEncoding.DecodeString(l.BodyBase64)
		if err != nil {
			return nil, fmt.Errorf("reading body_base64: %w", err)
		}
		return b, nil
	}
	var text string
	if len(l.Body) > 0 && l.Body[0] == '"' {
		if err := json.Unmarshal(l.Body, &text); err != nil {
			return nil, fmt.Errorf("reading body: %w", err)
		}
		return []byte(text), nil
	}
	return l.Body, nil
}
