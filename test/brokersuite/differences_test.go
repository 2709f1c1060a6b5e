package brokersuite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamd/streamd/test/brokersuite"
)

// TestDifferences holds three things together: the steps in which the embedded broker answers otherwise, the entries that say
// why, and the page that tells people.
func TestDifferences(t *testing.T) {
	t.Parallel()
	entries := map[string]string{}
	ids := map[string]bool{}
	for _, d := range brokersuite.Differences() {
		if ids[d.ID] {
			t.Errorf("two differences are called %s", d.ID)
		}
		ids[d.ID] = true
		for _, step := range d.Steps {
			if other := entries[step]; other != "" {
				t.Errorf("%s is in %s and in %s", step, other, d.ID)
			}
			entries[step] = d.ID
		}
	}
	recorded := map[string]bool{}
	for _, s := range brokersuite.Scenarios() {
		for _, step := range brokersuite.OwnSteps(s.Name) {
			name := s.Name + "/" + step
			recorded[name] = true
			if entries[name] == "" {
				t.Errorf("testdata/embedded has %s, but no entry of Differences says why", name)
			}
		}
	}
	for step, id := range entries {
		if !recorded[step] {
			t.Errorf("%s: %s does not differ", id, step)
		}
	}
}

func TestDifferences_areOnThePage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "embedded-broker.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Differences\n")
	if !found {
		t.Fatal("the page has no section Differences")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string]string{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if id := strings.Trim(strings.TrimSpace(cells[0]), "`"); len(cells) == 2 && strings.HasPrefix(line, "| `") {
			rows[id] = strings.TrimSpace(cells[1])
		}
	}
	for _, d := range brokersuite.Differences() {
		if rows[d.ID] != d.Reason {
			t.Errorf("%s: the page says\n  %s\nand the table says\n  %s", d.ID, rows[d.ID], d.Reason)
		}
		delete(rows, d.ID)
	}
	for id := range rows {
		t.Errorf("the page has %s, which is no entry of Differences", id)
	}
}
