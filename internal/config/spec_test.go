package config

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every default, bound and enumeration of the tags must itself be valid, and every key documented.
func TestTagsAreSound(t *testing.T) {
	duration, size := regexp.MustCompile(durationPattern), regexp.MustCompile(sizePattern)
	names := map[string]string{}
	var walk func(path string, f *field)
	walk = func(path string, f *field) {
		for _, c := range f.fields {
			p := strings.TrimPrefix(path+"."+c.key, ".")
			if c.doc == "" || !strings.HasSuffix(c.doc, ".") && !strings.HasSuffix(c.doc, "*.") {
				t.Errorf("%s: the doc %q is no sentence", p, c.doc)
			}
			if !regexp.MustCompile(`^[a-z]+(_[a-z0-9]+)*$`).MatchString(c.key) {
				t.Errorf("%s: not snake_case", p)
			}
			for _, v := range []string{c.fallback, c.min, c.max} {
				if v != "" && (c.kind == durationField && !duration.MatchString(v) || c.kind == sizeField && !size.MatchString(v)) {
					t.Errorf("%s: %q has the wrong form", p, v)
				}
			}
			if len(c.enum) > 0 && c.hasFallback && !slices.Contains(c.enum, c.fallback) {
				t.Errorf("%s: the default %q is not among %v", p, c.fallback, c.enum)
			}
			walk(p, c)
			if c.items != nil {
				walk(p, c.items)
			}
		}
	}
	root := describeConfig()
	walk("", root)
	root.scalars(func(path []string, _ *field) {
		p := strings.Join(path, ".")
		if other, dup := names[EnvName(p)]; dup {
			t.Errorf("%s and %s share the variable %s", p, other, EnvName(p))
		}
		names[EnvName(p)] = p
	})
	if len(names) < 15 {
		t.Errorf("only %d variables", len(names))
	}
}

// TestEveryScalarByEnvironment sets each documented scalar by its variable, with nothing of it in the file.
func TestEveryScalarByEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.yaml")
	text := "brokers: [{name: m, name_servers: 'a:1'}]\nplugins: [{name: p, command: [x]}]\nhandlers: [{name: h}]\nstreams: [{name: s, group: g, subscribe: [{topic: T}]}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	describeConfig().scalars(func(steps []string, f *field) {
		key := strings.Join(steps, ".")
		t.Run(key, func(t *testing.T) {
			value := map[fieldKind]string{intField: "17", numberField: "0.5", boolField: "true", durationField: "17ms", sizeField: "15MiB", textField: "127.0.0.1:17"}[f.kind]
			if len(f.enum) > 0 {
				value = f.enum[len(f.enum)-1]
			}
			if key == "member" {
				value = "m17"
			}
			t.Setenv(EnvName(key), value)
			l, err := Load(Options{Paths: []string{path}})
			if err != nil {
				t.Fatal(err)
			}
			if n, whole := l.root.at(steps); !whole || n.text != value || n.pos.Source != "environment "+EnvName(key) {
				t.Errorf("%s = %+v", key, n)
			}
		})
	})
}

var updateReference = flag.Bool("update-reference", false, "rewrite docs/reference/configuration.md and its schema")

// TestReferenceIsCurrent keeps the generated page and schema what the structs say.
func TestReferenceIsCurrent(t *testing.T) {
	schema, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{"configuration.md": Reference(), "streamd.schema.json": schema} {
		path := filepath.Join("..", "..", "docs", "reference", name)
		if *updateReference {
			if err := os.WriteFile(path, want, 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not current; run go generate ./internal/config", path)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]Size{"0B": 0, "512B": 512, "256KiB": 256 << 10, "16MiB": 16 << 20, "2GiB": 2 << 30} {
		got, err := ParseSize(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("ParseSize(%s) = %v (%d), %v", text, got, got, err)
		}
	}
	for _, text := range []string{"", "1", "KiB", "-1B", "1.5MiB", "1kb", "9999999999999999999B", "9999999999999GiB"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %v, want an error", text, got)
		}
	}
}

// FuzzLoad: no file makes Load panic, and a file that is accepted prints without loss of structure.
func FuzzLoad(f *testing.F) {
	seeds, err := filepath.Glob("testdata/bad/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range seeds {
		text, err := os.ReadFile(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var ps problems
		root := parse("f.yaml", text, &ps)
		if root == nil {
			if len(ps.list) == 0 {
				t.Error("refused without a problem")
			}
			return
		}
		if _, err := build(root, describeConfig(), Options{}, &ps); err != nil {
			t.Fatal(err)
		}
		if len(ps.list) == 0 {
			if _, err := decode(root); err != nil {
				t.Errorf("accepted and not decodable: %v", err)
			}
		}
	})
}
