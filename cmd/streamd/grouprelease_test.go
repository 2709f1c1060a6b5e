package main

import (
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/grouprelease"
)

func TestParsePosition(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	offset, _ := grouprelease.ParsePosition("7")
	for s, want := range map[string]grouprelease.Position{
		"min": {}, "7": offset, "2h": grouprelease.AtTime(now.Add(-2 * time.Hour)),
		"2026-11-30T08:00:00Z": grouprelease.AtTime(now.Add(-4 * time.Hour)),
	} {
		if got, err := parsePosition(s, now); err != nil || got != want {
			t.Errorf("%q: %+v %v", s, got, err)
		}
	}
	for _, s := range []string{"", "-1", "-2h", "yesterday", "MAX", "1.5"} {
		if _, err := parsePosition(s, now); err == nil || !strings.Contains(err.Error(), "2h for two hours ago") {
			t.Errorf("%q: %v", s, err)
		}
	}
}
