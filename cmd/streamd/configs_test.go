package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/streamd/streamd/internal/config"
)

// TestSampleConfigs runs each file in configs/ as it is, but for what a test must not use: /usr, /run/secrets, /var/lib,
// fixed ports, and a RocketMQ elsewhere. The script has to see a message handled.
func TestSampleConfigs(t *testing.T) {
	files, err := filepath.Glob("../../configs/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("found %v: %v", files, err)
	}
	orders := filepath.Join(t.TempDir(), "orders")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", orders, "../../plugins/orders").CombinedOutput(); err != nil {
		t.Fatalf("building plugins/orders: %v\n%s", err, out)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			testscript.Run(t, testscript.Params{
				Files: []string{"testdata/sample.txtar"},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"broker": cmdBroker, "put": cmdPut, "await": cmdAwait, "start": cmdStart, "signal": cmdSignal, "exit": cmdExit,
					"committed": cmdCommitted,
				},
				Setup: func(env *testscript.Env) error {
					env.Setenv("NAMESRV_ADDR", "")
					env.Values["stage"] = &stage{}
					env.Setenv("NAME", "local")
					if strings.Contains(string(text), "name: main") {
						env.Setenv("NAME", "main")
					}
					here := strings.NewReplacer("/usr/lib/streamd/plugins/orders", "./bin/plugins/orders", "/run/secrets/", "secrets/",
						"/var/lib/streamd", "./state", `":8421"`, `"127.0.0.1:0"`).Replace(string(text))
					if err := os.MkdirAll(filepath.Join(env.WorkDir, "bin/plugins"), 0o750); err != nil {
						return err
					}
					if err := os.Symlink(orders, filepath.Join(env.WorkDir, "bin/plugins/orders")); err != nil {
						return err
					}
					return os.WriteFile(filepath.Join(env.WorkDir, "sample.yaml"), []byte(here), 0o600)
				},
			})
		})
	}
}

// TestExplainedHasEveryKey keeps configs/explained.yaml complete.
func TestExplainedHasEveryKey(t *testing.T) {
	text, err := os.ReadFile("../../configs/explained.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range config.Keys() {
		last := key[strings.LastIndex(key, ".")+1:]
		if !strings.Contains(string(text), last+":") {
			t.Errorf("configs/explained.yaml says nothing of %s", key)
		}
	}
	if !slices.Contains(config.Keys(), "streams.retry.max_retries") {
		t.Error("Keys does not list streams.retry.max_retries")
	}
}
