package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/streamd/streamd"

// ban says that nothing the package imports, directly or not, may match one of the prefixes.
type ban struct {
	pkg    string // import path below the module; "..." at the end takes everything below it
	banned []string
	reason string
}

var bans = []ban{
	{"sdk", []string{module + "/", "github.com/", "google.golang.org/", "go.opentelemetry.io/"}, "authors depend on the SDK: it brings nothing but the standard library"},
	{"internal/frame", []string{module + "/", "github.com/", "google.golang.org/"}, "a leaf that host and SDK share"},
	{"allocate", []string{module + "/internal", module + "/runtime", "github.com/", "net", "os", "log"}, "strategies are pure functions of their input"},
	{"internal/rocketmq/wire", []string{module + "/", "net/http", "context", "os", "log/slog"}, "bytes to values and back: no I/O, nothing that blocks"},
	{"internal/rocketmq", []string{module + "/internal/broker", module + "/runtime", module + "/internal/config", "github.com/spf13/"}, "client and embedded broker meet only on the wire, so one's mistake cannot hide the other's"},
	{"internal/rocketmq/remoting", []string{module + "/internal/broker", module + "/runtime", module + "/sdk"}, "one connection; knows no group and no queue"},
	{"internal/broker", []string{module + "/internal/rocketmq/remoting", module + "/runtime", module + "/internal/pluginhost"}, "client and embedded broker meet only on the wire"},
	{"runtime", []string{"github.com/spf13/", "github.com/hashicorp/", "google.golang.org/grpc", module + "/internal/broker", module + "/internal/config", module + "/internal/pluginhost", module + "/plugins", module + "/internal/daemon"}, "the engine declares seams and the daemon fills them"},
	{"internal/pluginhost", []string{module + "/runtime", module + "/internal/config", module + "/internal/rocketmq", module + "/plugins"}, "the host carries frames; it knows no queue worker and no broker"},
	{"internal/fromgroup", []string{module + "/internal/broker", module + "/internal/daemon", module + "/internal/pluginhost", "github.com/spf13/cobra"}, "facts of a group to text: it is given a client, starts nothing, and its text is held against internal/config alone"},
	{"internal/deadletters", []string{module + "/internal/broker", module + "/internal/daemon", module + "/internal/config", module + "/runtime", "github.com/spf13/"}, "a reader over a client and a journal: it shares no code with the engine that made the dead letters, only the form of its failure records"},
	{"internal/grouprelease", []string{module + "/internal/broker", module + "/internal/daemon", module + "/internal/config", module + "/internal/pluginhost", "github.com/spf13/"}, "it chooses, stores and waits over a client that it is given, and starts nothing"},
	{"sdk/serve", []string{module + "/runtime", module + "/internal/pluginhost", module + "/internal/rocketmq", module + "/internal/config"}, "the author's side never sees the host's"},
	{"sdk/sdktest", []string{module + "/runtime", module + "/internal/pluginhost", module + "/internal/rocketmq"}, "authors run it without a daemon"},
	{"plugins/...", []string{module + "/runtime", module + "/internal/pluginhost", module + "/internal/rocketmq", module + "/internal/config", module + "/internal/daemon"}, "a first-party plugin gets no private door"},
	{"cmd/streamd", []string{module + "/plugins", module + "/sdk/sdktest", module + "/allocate/allocatetest", module + "/internal/broker/faultproxy", module + "/internal/brokertest"}, "plugins are processes, and no test code ships (go-plugin brings testing along; depguard keeps it out of ours)"},
}

type listed struct {
	ImportPath string
	Deps       []string
	Standard   bool
}

func TestImports_goDownOnly(t *testing.T) {
	t.Parallel()
	packages := list(t)
	for _, b := range bans {
		t.Run(strings.ReplaceAll(b.pkg, "/", "_"), func(t *testing.T) {
			t.Parallel()
			checked := 0
			for _, p := range packages {
				if !matches(p.ImportPath, b.pkg) {
					continue
				}
				checked++
				for _, d := range p.Deps {
					if d != p.ImportPath && slices.ContainsFunc(b.banned, func(prefix string) bool { return bannedBy(d, prefix) }) && !allowed(b.pkg, d) {
						t.Errorf("%s depends on %s: %s", p.ImportPath, d, b.reason)
					}
				}
			}
			if checked == 0 {
				t.Errorf("no package matches %s: the rule guards nothing", b.pkg)
			}
		})
	}
}

// allowed lists what design.md 5 grants to a package although a prefix above covers it.
func allowed(pkg, dep string) bool {
	grants := map[string][]string{
		"allocate": {module + "/sdk", "log"}, // sdk.Env names a slog.Logger; depguard bans a direct import
		// zstd's streaming side names context; depguard bans a direct import of it.
		"internal/rocketmq/wire": {"github.com/pierrec/lz4/v4", "github.com/klauspost/compress", "context"},
		"internal/broker":        {module + "/internal/rocketmq/wire"},
	}
	for _, g := range grants[pkg] {
		if dep == g || strings.HasPrefix(dep, g+"/") {
			return true
		}
	}
	return standardInternals(dep)
}

// standardInternals are pulled in by pure packages of the standard library (fmt needs os, for one).
func standardInternals(dep string) bool {
	return dep == "os" || strings.HasPrefix(dep, "internal/") || dep == "log/internal"
}

func bannedBy(dep, prefix string) bool {
	if strings.HasSuffix(prefix, "/") {
		return strings.HasPrefix(dep, prefix)
	}
	return dep == prefix || strings.HasPrefix(dep, prefix+"/")
}

func matches(path, rule string) bool {
	if base, ok := strings.CutSuffix(rule, "/..."); ok {
		return strings.HasPrefix(path, module+"/"+base+"/")
	}
	return path == module+"/"+rule
}

func list(t *testing.T) []listed {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Deps,Standard", module+"/...").Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("go list: %s", exit.Stderr)
		}
		t.Fatal(err)
	}
	var packages []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		if !p.Standard {
			packages = append(packages, p)
		}
	}
}
