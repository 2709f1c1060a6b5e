package config_test

import (
	"errors"
	"testing"

	"github.com/streamd/streamd/internal/config"
)

// A bracket that is not closed is told where it was opened, wherever the parser gave up.
func TestUnclosedBracketIsToldWhereItBegins(t *testing.T) {
	for _, c := range [][2]string{
		{"brokers: [{name: main}", "f:1:10: the [ that begins here is not closed; try ] where it ends"},
		{"brokers: [{name: main]", "f:1:11: the { that begins here is not closed; try } where it ends"},
		{"a: 1\nbrokers:\n  - {name: main, servers: [\"a]\"]\nb: 2\n", "f:3:5: the { that begins here is not closed; try } where it ends"},
		{"a: 1\nstreams: [a, b # ]\n\nb: 2\n", "f:2:10: the [ that begins here is not closed; try ] where it ends"},
		{"a: it's [fine\nb: [x\n", "f:2:4: the [ that begins here is not closed; try ] where it ends"},
	} {
		text, want := c[0], c[1]
		_, err := config.ParseRaw("f", []byte(text))
		var bad *config.InvalidError
		if !errors.As(err, &bad) || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
	if _, err := config.ParseRaw("f", []byte("a: [\"]\", {b: '}'}] # [\nc: 'it''s [' \n")); err != nil {
		t.Error(err)
	}
}
