package config

import (
	"strconv"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// checkFilter reports filters that contradict each other or cannot be meant. Whether an SQL92 expression can be read is the
// brokers' word, which is asked for at the start.
func checkFilter(sub *node, ps *problems) {
	tags, hasTags := sub.str("tags")
	sql, hasSQL := sub.str("sql")
	if hasTags && hasSQL {
		ps.add(sql.pos, "one of the two; TAGS IN ('a', 'b') is SQL92 for tags", "sql and tags (%s) exclude each other", tags.pos)
		return
	}
	if hasSQL && strings.TrimSpace(sql.text) == "" {
		ps.add(sql.pos, "sql: \"amount > 100\", or removing it for every message", "sql is blank")
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
