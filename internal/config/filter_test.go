package config_test

import (
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/config"
)

// A cluster may read what this version cannot: it is asked at the start, and what is wrong by all that is known is a warning.
func TestSQLOfAClusterIsAWarning(t *testing.T) {
	text := strings.Replace(minimal, "{topic: Orders}", `{topic: Orders, sql: "x >"}, {topic: Refunds, sql: "x > 1"}`, 1)
	path := write(t, "s.yaml", text)
	l := load(t, config.Options{Paths: []string{path}, SQL: readSQL})
	if len(l.Warnings) != 1 {
		t.Fatalf("warnings: %v", l.Warnings)
	}
	want := path + `:5:75: sql: "x >" cannot be read as RocketMQ's SQL92: line 1, column 4: expected a property, a number, a string or a parenthesis, found the end; ` +
		`correct it; brokers of a version that can read it take it, others refuse it at the start`
	if got := l.Warnings[0].String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	t.Setenv("FILTER", "hunter2 >")
	path = write(t, "s.yaml", strings.Replace(minimal, "{topic: Orders}", `{topic: Orders, sql: "${env:FILTER}"}`, 1))
	l = load(t, config.Options{Paths: []string{path}, SQL: readSQL})
	if len(l.Warnings) != 1 || strings.Contains(l.Warnings[0].String(), "hunter2") || !strings.Contains(l.Warnings[0].String(), "${env:FILTER}") {
		t.Errorf("warnings: %v", l.Warnings)
	}
	if l = load(t, config.Options{Paths: []string{path}}); len(l.Warnings) > 0 {
		t.Errorf("read by nobody, and warned of: %v", l.Warnings)
	}
}
