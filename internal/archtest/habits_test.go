package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// sources calls f for each Go file of the repository that is not generated.
func sources(t *testing.T, f func(path string, content []byte)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git" || d.Name() == "bin" || d.Name() == ".cache") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, ".pb.go") {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f(path, content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTests_neitherSleepNorSkip keeps the suite honest: a sleep is a race in waiting, a skipped check is no check.
func TestTests_neitherSleepNorSkip(t *testing.T) {
	t.Parallel()
	banned := regexp.MustCompile(`\btime\.Sleep\(|\bt\.Skip(Now|f)?\(|\btb\.Skip|testing\.Short\(\)`)
	sources(t, func(path string, content []byte) {
		if !strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "habits_test.go") {
			return
		}
		for n, line := range bytes.Split(content, []byte("\n")) {
			if banned.Match(line) {
				t.Errorf("%s:%d: %s", path, n+1, bytes.TrimSpace(line))
			}
		}
	})
}

// TestTests_useBubbles keeps virtual time to the package that knows how the race detector survives it.
func TestTests_useBubbles(t *testing.T) {
	t.Parallel()
	direct := regexp.MustCompile(`\bsynctest\.(Test|Run)\(`)
	sources(t, func(path string, content []byte) {
		if strings.Contains(path, "internal/bubbletest/") || strings.HasSuffix(path, "habits_test.go") {
			return
		}
		for n, line := range bytes.Split(content, []byte("\n")) {
			if direct.Match(line) {
				t.Errorf("%s:%d: %s: use internal/bubbletest", path, n+1, bytes.TrimSpace(line))
			}
		}
	})
}

// TestTests_logToWhatMayBeRead keeps plain buffers from loggers: something logs in the background sooner or later.
func TestTests_logToWhatMayBeRead(t *testing.T) {
	t.Parallel()
	handler := regexp.MustCompile(`\bslog\.New(?:JSON|Text)Handler\(&?([\w.]+),`)
	sources(t, func(path string, content []byte) {
		if !strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/sdk/") { // The SDK leaves the repository without this package.
			return
		}
		for _, found := range handler.FindAllSubmatch(content, -1) {
			_, name, dotted := bytes.Cut(found[1], []byte("."))
			if !dotted {
				name = found[1]
			}
			buffer := regexp.MustCompile(`\b` + string(name) + `\s+\*?(bytes\.Buffer|strings\.Builder)\b`)
			if buffer.Match(content) {
				t.Errorf("%s: a logger writes to the buffer %s: use internal/logtest", path, name)
			}
		}
	})
}

// TestFiles_stayReadable reports files that have outgrown one subject. Tests may be longer: tables are.
func TestFiles_stayReadable(t *testing.T) {
	t.Parallel()
	sources(t, func(path string, content []byte) {
		lines := bytes.Count(content, []byte("\n"))
		limit := 600
		if strings.HasSuffix(path, "_test.go") {
			limit = 1000
		}
		if lines > limit {
			t.Errorf("%s has %d lines, the limit is %d: split it by subject", path, lines, limit)
		}
	})
}

// TestFunctions_stayReadable holds functions to a screen and a half.
func TestFunctions_stayReadable(t *testing.T) {
	t.Parallel()
	sources(t, func(path string, content []byte) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, content, parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				if n := set.Position(fn.End()).Line - set.Position(fn.Pos()).Line; n > 100 {
					t.Errorf("%s: %s has %d lines, the limit is 100", set.Position(fn.Pos()), fn.Name.Name, n)
				}
			}
		}
	})
}

// TestPackages_withGoroutinesCheckLeaks wants goleak in the TestMain of each package that starts goroutines.
func TestPackages_withGoroutinesCheckLeaks(t *testing.T) {
	t.Parallel()
	starts, guarded, tested := map[string]bool{}, map[string]bool{}, map[string]bool{}
	goStatement := regexp.MustCompile(`(?m)^\s*go (func\b|[a-zA-Z_.]+\()|\.Go\(func`)
	sources(t, func(path string, content []byte) {
		dir := filepath.Dir(path)
		if strings.HasSuffix(path, "_test.go") {
			tested[dir] = true
			if bytes.Contains(content, []byte("goleak.VerifyTestMain")) {
				guarded[dir] = true
			}
			return
		}
		if goStatement.Match(content) {
			starts[dir] = true
		}
	})
	for dir := range starts {
		if tested[dir] && !guarded[dir] {
			t.Errorf("%s starts goroutines: its TestMain must call goleak.VerifyTestMain", dir)
		}
	}
}

// TestPackages_haveDoc wants one package comment in each package that ships.
func TestPackages_haveDoc(t *testing.T) {
	t.Parallel()
	documented, seen := map[string]bool{}, map[string]bool{}
	comment := regexp.MustCompile(`(?m)^(// (Package|Command) |// [A-Z][a-z]+ .*\n(//.*\n)*package main)`)
	sources(t, func(path string, content []byte) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		dir := filepath.Dir(path)
		seen[dir] = true
		if comment.Match(content) {
			documented[dir] = true
		}
	})
	for dir := range seen {
		if !documented[dir] {
			t.Errorf("%s has no package comment", dir)
		}
	}
}
