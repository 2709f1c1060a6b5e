package config

import (
	"strconv"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// sqlReader reads the SQL92 expressions of a stream.
type sqlReader struct {
	read  func(string) error // nil = nobody does
	final bool               // the broker reads them the same way
}

// sqlOf is the reader for a stream: final where the broker is embedded, whose own it is.
func sqlOf(root, s *node, read func(string) error) sqlReader {
	r := sqlReader{read: read}
	if name, ok := s.str("broker"); ok {
		r.final = find(root.get("brokers"), name.text).get("embedded") != nil
	}
	return r
}

// check reports an expression that cannot be read. A cluster may be of a version that knows more than this one, and is asked
// at the start: for it that is a warning.
func (r sqlReader) check(sql *node, ps *problems) {
	if r.read == nil || sql.tag != "!!str" {
		return
	}
	err := r.read(sql.text)
	if err == nil {
		return
	}
	why := ": " + err.Error()
	if sql.written != "" {
		why = "" // it quotes what was injected
	}
	if r.final {
		ps.add(sql.pos, "sql: \"amount > 100 AND region = 'eu'\", for instance", "sql: %s cannot be read%s", sql.quoted(sql.text), why)
		return
	}
	ps.warn(sql.pos, "correcting it; brokers of a version that can read it take it, others refuse it at the start", "sql: %s cannot be read as RocketMQ's SQL92%s", sql.quoted(sql.text), why)
}

// checkFilter reports filters that contradict each other or cannot be meant.
func checkFilter(sub *node, reader sqlReader, ps *problems) {
	tags, hasTags := sub.str("tags")
	sql, hasSQL := sub.str("sql")
	if hasTags && hasSQL {
		ps.add(sql.pos, "one of the two; TAGS IN ('a', 'b') is SQL92 for tags", "sql and tags (%s) exclude each other", tags.pos)
		return
	}
	switch {
	case !hasSQL:
	case strings.TrimSpace(sql.text) == "":
		ps.add(sql.pos, "sql: \"amount > 100\", or removing it for every message", "sql is blank")
	default:
		reader.check(sql, ps)
	}
	if !hasTags {
		return
	}
	parsed, err := wire.ParseTags(tags.text)
	if err != nil {
		try := "tags: \"a || b\""
		if strings.ContainsAny(tags.text, "=<>'") || strings.Contains(tags.text, " ") {
			try += ", or sql: for an expression over properties"
		}
		ps.add(tags.pos, try, "tags: %s is no filter by tags", tags.quoted(tags.text))
	}
	for _, tag := range parsed {
		if strings.ContainsAny(tag, "|,") {
			apart := strings.FieldsFunc(tag, func(r rune) bool { return r == '|' || r == ',' || r == ' ' })
			try := strconv.Quote(strings.Join(apart, " || ")) + ", or sql: \"TAGS = '" + tag + "'\" where that is one tag"
			ps.add(tags.pos, try, "tags: %s has no || between its tags", tags.quoted(tag))
		}
	}
}
