// Package scaffold writes new plugin projects: what `streamd plugin new` does.
//
// A project builds and passes its tests as it is written, outside this repository: the SDK is unpacked into it and its go.mod
// points there, until the SDK is published.
package scaffold

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/streamd/streamd"
)

//go:embed template
var templates embed.FS

const (
	sdkModule = "github.com/streamd/streamd"
	sdkFolder = "streamd-sdk"
)

// direct are the modules whose packages the SDK imports. Their versions are those of streamd itself.
func direct() []string {
	return []string{
		"github.com/hashicorp/go-hclog", "github.com/hashicorp/go-plugin", "go.opentelemetry.io/otel/trace",
		"google.golang.org/grpc", "google.golang.org/protobuf",
	}
}

// indirect are the modules that those need.
func indirect() []string {
	return []string{
		"github.com/cespare/xxhash/v2", "github.com/fatih/color", "github.com/golang/protobuf", "github.com/hashicorp/yamux",
		"github.com/mattn/go-colorable", "github.com/mattn/go-isatty", "github.com/oklog/run", "go.opentelemetry.io/otel",
		"golang.org/x/net", "golang.org/x/sys", "golang.org/x/text", "google.golang.org/genproto/googleapis/rpc",
	}
}

// exporting are the modules that only sdk/serve/otelexport needs: the SDK's go.mod names them, a new project's does not, and
// `go mod tidy` moves them over once a plugin imports that package.
func exporting() []string {
	return []string{
		"github.com/cenkalti/backoff/v5", "github.com/go-logr/logr", "github.com/go-logr/stdr", "github.com/google/uuid",
		"github.com/grpc-ecosystem/grpc-gateway/v2", "go.opentelemetry.io/auto/sdk",
		"go.opentelemetry.io/otel/exporters/otlp/otlptrace", "go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc",
		"go.opentelemetry.io/otel/log", "go.opentelemetry.io/otel/metric", "go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/proto/otlp",
		"google.golang.org/genproto/googleapis/api",
	}
}

// Options of a new project.
type Options struct {
	Name   string // of the plugin and its component: lower-case letters, digits, "-" and "_"
	Module string // Go module path; "" = example.com/<name>
}

var (
	validName   = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)
	validModule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~/-]*$`)
)

// project is what the templates see.
type project struct {
	Options
	SDKModule, SDKFolder string
	GoVersion            string
	Requires, Exporting  []string // module and version
}

// Write makes a project with one handler in dir, which must be absent or empty.
func Write(dir string, o Options) error {
	if !validName.MatchString(o.Name) {
		return fmt.Errorf("plugin name %q: use lower-case letters, digits, - and _, starting with a letter", o.Name)
	}
	if o.Module == "" {
		o.Module = "example.com/" + o.Name
	}
	if !validModule.MatchString(o.Module) {
		return fmt.Errorf("module path %q is no Go module path; write something like example.com/%s", o.Module, o.Name)
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty; name a folder that does not exist yet", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking at %s: %w", dir, err)
	}
	p, err := newProject(o)
	if err != nil {
		return err
	}
	if err := writeTemplates(dir, p); err != nil {
		return err
	}
	return unpackSDK(filepath.Join(dir, sdkFolder), p)
}

func newProject(o Options) (*project, error) {
	mod, err := streamd.SDK.ReadFile("go.mod")
	if err != nil {
		return nil, fmt.Errorf("reading the embedded go.mod: %w", err)
	}
	p := &project{Options: o, SDKModule: sdkModule, SDKFolder: sdkFolder}
	versions := map[string]string{}
	for line := range strings.Lines(string(mod)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		switch {
		case len(fields) >= 2 && fields[0] == "go":
			p.GoVersion = fields[1]
		case len(fields) >= 2 && strings.HasPrefix(fields[1], "v"):
			versions[fields[0]] = fields[1]
		}
	}
	if p.Requires, err = pick(versions, append(direct(), indirect()...)); err != nil {
		return nil, err
	}
	if p.Exporting, err = pick(versions, exporting()); err != nil {
		return nil, err
	}
	return p, nil
}

// pick gives modules the versions that streamd itself has.
func pick(versions map[string]string, modules []string) ([]string, error) {
	out := make([]string, 0, len(modules))
	for _, module := range modules {
		if versions[module] == "" {
			return nil, fmt.Errorf("the embedded go.mod has no version of %s", module)
		}
		out = append(out, module+" "+versions[module])
	}
	return out, nil
}

func writeTemplates(dir string, p *project) error {
	return walk(templates, "template", func(name string, content []byte) error {
		name = strings.TrimSuffix(strings.TrimPrefix(name, "template/"), ".tmpl")
		if name == "gitignore" { // embed leaves files out that begin with a dot
			name = ".gitignore"
		}
		t, err := template.New(name).Option("missingkey=error").Parse(string(content))
		if err != nil {
			return fmt.Errorf("reading the template of %s: %w", name, err)
		}
		var out bytes.Buffer
		if err := t.Execute(&out, p); err != nil {
			return fmt.Errorf("filling the template of %s: %w", name, err)
		}
		return writeFile(filepath.Join(dir, filepath.FromSlash(name)), out.Bytes())
	})
}

// unpackSDK writes the SDK without its tests, with a go.mod of its own that names only what it needs.
func unpackSDK(dir string, p *project) error {
	err := walk(streamd.SDK, ".", func(name string, content []byte) error {
		if strings.HasSuffix(name, "_test.go") || slices.Contains(strings.Split(name, "/"), "testdata") || path.Dir(name) == "." {
			return nil
		}
		return writeFile(filepath.Join(dir, filepath.FromSlash(name)), content)
	})
	if err != nil {
		return err
	}
	mod := fmt.Sprintf("module %s\n\ngo %s\n\nrequire (\n\t%s\n)\n", sdkModule, p.GoVersion, strings.Join(slices.Concat(p.Requires, p.Exporting), "\n\t"))
	if err := writeFile(filepath.Join(dir, "go.mod"), []byte(mod)); err != nil {
		return err
	}
	license, err := streamd.SDK.ReadFile("LICENSE")
	if err != nil {
		return fmt.Errorf("reading the embedded license: %w", err)
	}
	if err := writeFile(filepath.Join(dir, "LICENSE"), license); err != nil {
		return err
	}
	sums, err := sums(p)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(filepath.Dir(dir), "go.sum"), sums)
}

// sums picks the checksums that a build needs: of the modules themselves, and of all go.mod files that may be read on the
// way to them.
func sums(p *project) ([]byte, error) {
	all, err := streamd.SDK.ReadFile("go.sum")
	if err != nil {
		return nil, fmt.Errorf("reading the embedded go.sum: %w", err)
	}
	wanted := slices.Concat(p.Requires, p.Exporting)
	var out bytes.Buffer
	lines := bufio.NewScanner(bytes.NewReader(all))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 3 && (strings.HasSuffix(fields[1], "/go.mod") || slices.Contains(wanted, fields[0]+" "+fields[1])) {
			out.WriteString(lines.Text() + "\n")
		}
	}
	return out.Bytes(), nil
}

func walk(files fs.FS, root string, visit func(name string, content []byte) error) error {
	return fs.WalkDir(files, root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("reading the embedded %s: %w", name, err)
		}
		if entry.IsDir() {
			return nil
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return fmt.Errorf("reading the embedded %s: %w", name, err)
		}
		return visit(name, content)
	})
}

func writeFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // source code
		return fmt.Errorf("making the folder of %s: %w", name, err)
	}
	if err := os.WriteFile(name, content, 0o644); err != nil { //nolint:gosec // source code
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
