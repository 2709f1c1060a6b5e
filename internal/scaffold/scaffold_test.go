package scaffold

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/streamd/streamd/sdk/sdktest"
)

// goTool runs the go command outside the repository, without the network.
func goTool(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOPROXY=off", "GOWORK=off", "GOTOOLCHAIN=local")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestNewProjectBuildsAndPassesItsTests(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "invoice")
	if err := Write(dir, Options{Name: "invoice", Module: "example.org/acme/invoice"}); err != nil {
		t.Fatal(err)
	}
	goTool(t, dir, "vet", "./...")
	goTool(t, dir, "test", "./...")
	goTool(t, dir, "build", "-o", "invoice", ".")
	sdktest.RunBinary(t, filepath.Join(dir, "invoice"), nil)
	for name, unwanted := range map[string]string{"go.mod": "viper", "streamd-sdk/go.mod": "cobra"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || strings.Contains(string(text), unwanted) {
			t.Errorf("%s: %v, mentions %s", name, err, unwanted)
		}
	}
}

// TestModulesAreTheOnesInUse keeps the lists in step with what the SDK imports.
func TestModulesAreTheOnesInUse(t *testing.T) {
	used := func(packages ...string) []string {
		out := goTool(t, "../..", append([]string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}"}, packages...)...)
		return slices.Compact(slices.Sorted(strings.FieldsSeq(out)))
	}
	plain := used("./sdk", "./sdk/serve", "./sdk/sdktest")
	listed := append(append(direct(), indirect()...), sdkModule)
	slices.Sort(listed)
	if !slices.Equal(plain, listed) {
		t.Errorf("the SDK uses\n%s\nbut the list has\n%s", strings.Join(plain, "\n"), strings.Join(listed, "\n"))
	}
	more := slices.DeleteFunc(used("./sdk/serve/otelexport"), func(m string) bool { return slices.Contains(plain, m) })
	if want := exporting(); !slices.Equal(more, want) {
		t.Errorf("otelexport adds\n%s\nbut the list has\n%s", strings.Join(more, "\n"), strings.Join(want, "\n"))
	}
}

func TestWriteRefuses(t *testing.T) {
	occupied := t.TempDir()
	if err := os.WriteFile(filepath.Join(occupied, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(occupied, "x")
	for want, c := range map[string]struct {
		dir string
		o   Options
	}{
		"is not empty":    {occupied, Options{Name: "a"}},
		"looking at":      {file, Options{Name: "a"}},
		"plugin name":     {filepath.Join(t.TempDir(), "n"), Options{Name: "../evil"}},
		"is no Go module": {filepath.Join(t.TempDir(), "n"), Options{Name: "a", Module: "a b\nreplace"}},
	} {
		if err := Write(c.dir, c.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
