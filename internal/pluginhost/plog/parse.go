package plog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"unicode/utf8"
)

// Entry is one line, understood as far as it can be.
type Entry struct {
	Level   slog.Level
	Message string
	TraceID string      // 32 hex digits, or ""
	SpanID  string      // 16 hex digits, or ""
	Attrs   []slog.Attr // the line's other fields, sorted by name
	Panic   bool        // the line starts a Go runtime's account of its end
}

// maxAttrs bounds the fields of one line that become attributes.
const maxAttrs = 32

// Parse understands a line: JSON as hclog (@level, @message, @timestamp) or slog (level, msg, time) write it, with values of
// any type; "[LEVEL] text"; or plain text, which is taken as info.
func Parse(line []byte) Entry {
	if trimmed := bytes.TrimSpace(line); len(trimmed) > 1 && trimmed[0] == '{' {
		if e, ok := parseJSON(trimmed); ok {
			return e
		}
	}
	return parseText(strings.ToValidUTF8(string(line), "\uFFFD"))
}

func parseText(text string) Entry {
	if strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ") {
		return Entry{Level: slog.LevelError, Message: text, Panic: true}
	}
	if rest, ok := strings.CutPrefix(text, "["); ok {
		if name, message, ok := strings.Cut(rest, "]"); ok {
			if level, ok := parseLevel(name); ok {
				return Entry{Level: level, Message: strings.TrimSpace(message)}
			}
		}
	}
	return Entry{Level: slog.LevelInfo, Message: text}
}

func parseJSON(line []byte) (Entry, bool) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil || fields == nil || decoder.More() {
		return Entry{}, false
	}
	e := Entry{Level: slog.LevelInfo}
	if level, ok := parseLevel(text(take(fields, "@level", "level", "severity", "lvl"))); ok {
		e.Level = level
	}
	e.Message = text(take(fields, "@message", "msg", "message"))
	e.TraceID = hexID(take(fields, "trace_id", "traceId", "traceid"), 32)
	e.SpanID = hexID(take(fields, "span_id", "spanId", "spanid"), 16)
	take(fields, "@timestamp", "time", "ts", "timestamp")
	e.Attrs = attrs(fields)
	return e, true
}

// take removes all the names from fields and returns the value of the first that was there.
func take(fields map[string]any, names ...string) any {
	var found any
	for _, name := range names {
		if v, ok := fields[name]; ok {
			if found == nil {
				found = v
			}
			delete(fields, name)
		}
	}
	return found
}

// text renders a value of any type: strings as they are, anything else as JSON.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	out, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(out)
}

// attr keeps numbers and truth values what they are, so that logs can be searched by them; all else is text.
func attr(name string, v any) slog.Attr {
	switch v := v.(type) {
	case bool:
		return slog.Bool(name, v)
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return slog.Int64(name, n)
		}
		if f, err := v.Float64(); err == nil {
			return slog.Float64(name, f)
		}
	}
	return slog.String(name, text(v))
}

func attrs(fields map[string]any) []slog.Attr {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	dropped := max(0, len(names)-maxAttrs)
	out := make([]slog.Attr, 0, len(names)-dropped+1)
	for _, name := range names[:len(names)-dropped] {
		out = append(out, attr(strings.TrimPrefix(name, "@"), fields[name]))
	}
	if dropped > 0 {
		out = append(out, slog.Int("fields_dropped", dropped))
	}
	return out
}

func hexID(v any, digits int) string {
	id, ok := v.(string)
	if !ok || len(id) != digits {
		return ""
	}
	for _, c := range []byte(id) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return ""
		}
	}
	return id
}

// parseLevel knows the names of hclog, slog (with its offsets, "INFO+2") and syslog-like loggers.
func parseLevel(name string) (slog.Level, bool) {
	if !utf8.ValidString(name) || len(name) > 16 {
		return 0, false
	}
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "trace":
		return slog.LevelDebug - 4, true
	case "warning":
		return slog.LevelWarn, true
	case "err", "fatal", "panic", "critical", "crit", "alert", "emerg":
		return slog.LevelError, true
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(strings.TrimSpace(name))); err != nil {
		return 0, false
	}
	return level, true
}
