package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/exitcode"
)

// block is a fenced block of a page, or a command that its text mentions.
type block struct {
	page, text string
	mentioned  bool // a name of a command perhaps, without its arguments
}

// blocks returns the fenced blocks of the README and the guides.
func blocks(t *testing.T, language string) []block {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	fence := regexp.MustCompile("(?ms)^ *```" + language + "\n(.*?)^ *```$")
	var out []block
	for _, page := range append(pages, "../../README.md", "../../plugins/README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
			out = append(out, block{page: filepath.Base(page), text: m[1]})
		}
	}
	return out
}

// TestDocs_configsValidate holds every whole config in the docs against the schema and the checks.
func TestDocs_configsValidate(t *testing.T) {
	checked := 0
	for _, b := range blocks(t, "yaml") {
		if !strings.Contains(b.text, "streams:") {
			continue // a part of one
		}
		checked++
		file := filepath.Join(t.TempDir(), "streamd.yaml")
		if err := os.WriteFile(file, []byte(b.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, talk bytes.Buffer
		if code := run(t.Context(), []string{"validate", "-c", file}, nil, &out, &talk); code != exitcode.OK {
			t.Errorf("%s: this config is refused (%d): %s%s\n%s", b.page, code, out.String(), talk.String(), b.text)
		}
	}
	if checked < 4 {
		t.Errorf("found %d configs in the docs: the README and the guides have more", checked)
	}
}

// TestDocs_programsCompile builds every whole Go program in the docs.
func TestDocs_programsCompile(t *testing.T) {
	checked := 0
	for _, b := range blocks(t, "go") {
		if !strings.HasPrefix(b.text, "package main") {
			continue // a part of one
		}
		checked++
		dir := t.TempDir()
		file := filepath.Join(dir, "main.go")
		if err := os.WriteFile(file, []byte(b.text), 0o600); err != nil {
			t.Fatal(err)
		}
		// The program lies outside the module and is built in it, so that its imports are this module's packages.
		if text, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "plugin"), file).CombinedOutput(); err != nil {
			t.Errorf("%s: this program does not build: %v\n%s\n%s", b.page, err, text, b.text)
		}
	}
	if checked < 2 {
		t.Errorf("found %d programs in the docs: README and strategies.md have one each", checked)
	}
}

// TestDocs_commandsExist parses every streamd command of the docs with its flags and arguments, without running it.
func TestDocs_commandsExist(t *testing.T) {
	checked := 0
	for _, b := range append(blocks(t, "sh"), inline(t)...) {
		for line := range strings.Lines(b.text) {
			for part := range strings.SplitSeq(strings.ReplaceAll(strings.TrimSpace(line), "&&", "|"), "|") {
				words := strings.Fields(part)
				if len(words) < 2 || filepath.Base(words[0]) != "streamd" {
					continue
				}
				checked++
				cmd, rest, err := newRoot().Find(words[1:])
				if err == nil {
					err = cmd.ParseFlags(rest)
				}
				if err == nil && !b.mentioned {
					err = cmd.ValidateArgs(cmd.Flags().Args())
				}
				if err != nil || cmd.HasSubCommands() {
					t.Errorf("%s: %q is no command of streamd: %v", b.page, strings.TrimSpace(part), err)
				}
			}
		}
	}
	if checked < 10 {
		t.Errorf("found %d commands in the docs", checked)
	}
}

// inline returns the commands that stand in running text, between backquotes.
func inline(t *testing.T) []block {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile("`(streamd [a-z][^`]*)`")
	var out []block
	for _, page := range append(pages, "../../README.md", "../../plugins/README.md", "../../CHANGELOG.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range command.FindAllStringSubmatch(string(text), -1) {
			out = append(out, block{filepath.Base(page), m[1], true})
		}
	}
	return out
}

// TestDocs_linksLead follows every relative link of the README and the guides.
func TestDocs_linksLead(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/*/*.md", "../../plugins/*.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil || len(pages) == 0 {
			t.Fatalf("no page matches %s: %v", pattern, err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range link.FindAllStringSubmatch(string(text), -1) {
				if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
					t.Errorf("%s: the link %s leads nowhere", page, m[1])
				}
			}
		}
	}
}
