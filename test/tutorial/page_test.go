package tutorial

import (
	"bufio"
	"os"
	"regexp"
	"strings"
	"testing"
)

// block is one fenced block of the page.
type block struct {
	language string
	text     string
	before   string // what stands between it and the block before
	line     int
}

// readPage splits a page into its blocks.
func readPage(t *testing.T, path string) []block {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	var blocks []block
	var open *block
	before := ""
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open == nil:
			open = &block{language: language, before: before, line: n + 1}
		case fence:
			blocks, open, before = append(blocks, *open), nil, ""
		case open != nil:
			open.text += line + "\n"
		default:
			before += line + "\n"
		}
	}
	if err := lines.Err(); err != nil || open != nil {
		t.Fatalf("reading %s: %v; a block is left open: %t", path, err, open != nil)
	}
	return blocks
}

// pattern matches a line that the page shows, in an output of many.
func pattern(line string) *regexp.Regexp {
	parts := strings.Split(line, "…")
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(p)
	}
	return regexp.MustCompile("(?m)^" + strings.Join(parts, ".*") + "[ \t]*$")
}
