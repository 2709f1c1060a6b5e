package config

import (
	"io/fs"
	"testing"
)

// A file that is there and may not be read has its own advice, and no invitation to make it.
func TestAdviceOfForbiddenFiles(t *testing.T) {
	forbidden := &fs.PathError{Op: "open", Path: "s.yaml", Err: fs.ErrPermission}
	if got, want := instead("s.yaml", forbidden), "let this user read it, or name another file"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What a plugin's author wrote as a sentence is not made another one.
func TestAdviceOfPlugins(t *testing.T) {
	for hint, want := range map[string]string{
		"remove it":                        "x; remove it",
		"use a code of ISO 4217":           "x; use a code of ISO 4217",
		"currency":                         "x; try currency",
		"one of EUR, USD":                  "x; try one of EUR, USD",
		`"60s" for seconds`:                `x; try "60s" for seconds`,
		"at least 3":                       "x; write at least 3",
		`currency: "EUR"`:                  `x; write currency: "EUR"`,
		"":                                 "x",
		`a number with a unit: "250ms", …`: `x; write a number with a unit: "250ms", …`,
	} {
		if got := (Raw{}).Diagnose("", "x", hint).String(); got != want {
			t.Errorf("hint %q: %s, want %s", hint, got, want)
		}
	}
}
