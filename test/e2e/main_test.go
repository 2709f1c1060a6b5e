package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// binaries are the programs under test, built once by TestMain.
type binaries struct {
	dir                                                 string
	streamd, witness, faulty, counter, strategist, fill string
}

// built is set by TestMain and read by tests only.
var built binaries

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "e2e")
	if err == nil {
		built, err = build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

func build(dir string) (binaries, error) {
	const root = "github.com/streamd/streamd/"
	b := binaries{dir: dir}
	for path, pkg := range map[*string]string{
		&b.streamd: "cmd/streamd", &b.faulty: "internal/pluginhost/testplugins/faulty", &b.witness: "test/e2e/testplugins/witness",
		&b.counter: "test/e2e/testplugins/counter", &b.strategist: "test/e2e/testplugins/strategist",
		&b.fill: "test/e2e/fill",
	} {
		*path = filepath.Join(dir, filepath.Base(pkg))
		cmd := exec.Command("go", "build", "-trimpath", "-o", *path, root+pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as `make build` does, which has compiled most of it
		if out, err := cmd.CombinedOutput(); err != nil {
			return b, fmt.Errorf("building %s: %w\n%s", pkg, err, out)
		}
	}
	return b, nil
}
