package config_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/streamd/streamd/internal/broker/sql92"
	"github.com/streamd/streamd/internal/config"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestBadFiles loads each archive in testdata/bad: *.yaml in the order given, the variables of "env", the lines of "set".
// Every archive holds two faults or more and all of them must be told, each at its place.
func TestBadFiles(t *testing.T) {
	archives, err := filepath.Glob("testdata/bad/*.txtar")
	if err != nil || len(archives) < 12 {
		t.Fatalf("found %d archives, want a dozen: %v", len(archives), err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			path, err := filepath.Abs(path)
			if err != nil {
				t.Fatal(err)
			}
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			t.Setenv("NAMESRV_ADDR", "")
			opts := config.Options{Strategies: []string{"averagely", "circle"}, SQL: readSQL}
			want := ""
			for _, f := range a.Files {
				switch f.Name {
				case "want":
					want = string(f.Data)
				case "env":
					for line := range strings.Lines(string(f.Data)) {
						name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
						t.Setenv(name, value)
					}
				case "set":
					opts.Set = strings.Split(strings.TrimSpace(string(f.Data)), "\n")
				default:
					if err := os.WriteFile(f.Name, f.Data, 0o600); err != nil {
						t.Fatal(err)
					}
					opts.Paths = append(opts.Paths, f.Name)
				}
			}
			_, err = config.Load(opts)
			var bad *config.InvalidError
			if !errors.As(err, &bad) {
				t.Fatalf("Load = %v, want an InvalidError", err)
			}
			if len(bad.Problems) < 2 {
				t.Errorf("only one of the faults is told: %v", err)
			}
			got := err.Error() + "\n"
			if strings.Contains(got, "hunter2") || strings.Contains(got, "secret-host") {
				t.Errorf("an injected value is printed:\n%s", got)
			}
			if *update {
				writeWant(t, path, a, got)
				return
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("problems differ (-want +got); -update rewrites them:\n%s", d)
			}
		})
	}
}

func readSQL(expression string) error {
	_, err := sql92.Parse(expression)
	return err
}

func writeWant(t *testing.T, path string, a *txtar.Archive, got string) {
	t.Helper()
	files := a.Files[:0]
	for _, f := range a.Files {
		if f.Name != "want" {
			files = append(files, f)
		}
	}
	files = append(files, txtar.File{Name: "want", Data: []byte(got)})
	a.Files = files
	if err := os.WriteFile(path, txtar.Format(a), 0o600); err != nil {
		t.Fatal(err)
	}
}
