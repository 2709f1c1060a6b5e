package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/streamd/streamd/internal/buildinfo"
	"github.com/streamd/streamd/internal/deadletters"
	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/grouprelease"
	"github.com/streamd/streamd/internal/groupview"
	"github.com/streamd/streamd/internal/plugintool"
	"github.com/streamd/streamd/runtime"
)

// jsonPage is where the shapes of -o json are documented.
const jsonPage = "../../docs/reference/json-output.md"

// shapes are what commands encode with -o json. A command with several kinds of lines has one each, in the page's order. That
// of config print is the config's, which has a reference of its own.
func shapes() map[string][]any {
	return map[string][]any{
		"allocate try":    {plugintool.AllocationReport{}},
		"config print":    nil,
		"dlq list":        {deadletters.Listing{}},
		"dlq redrive":     {deadletters.Outcome{}},
		"dlq show":        {wholeLetter{}},
		"group release":   {[]grouprelease.Step{}},
		"group status":    {groupview.Group{}},
		"init":            {written{}},
		"plugin check":    {plugintool.CheckReport{}},
		"plugin describe": {plugintool.Description{}},
		"plugin list":     {[]plugintool.Entry{}},
		"plugin try":      {plugintool.Report{}},
		"produce":         {sent{}, checkLine{}},
		"validate":        {validation{}},
		"version":         {buildinfo.Info{}},
	}
}

// TestJSONDocs holds docs/reference/json-output.md against the commands: each one with -o json has a section, each key of its
// example is one that it writes at that place, and each key that it may write is in the example or named beside it.
func TestJSONDocs(t *testing.T) {
	page, err := os.ReadFile(jsonPage)
	if err != nil {
		t.Fatal(err)
	}
	sections, all := sectionsOf(string(page)), shapes()
	for _, name := range withJSON(newRoot()) {
		if _, ok := all[name]; !ok {
			t.Errorf("streamd %s has -o json, and this test does not know its shape", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text, ok := sections[name]
		if !ok {
			t.Errorf("no section says what streamd %s -o json prints", name)
			continue
		}
		checkSection(t, name, text, all[name])
		delete(sections, name)
	}
	for name := range sections {
		t.Errorf("the section %q is of no command with -o json", name)
	}
}

func checkSection(t *testing.T, name, text string, shapes []any) {
	t.Helper()
	examples := regexp.MustCompile("(?ms)^```json\n(.*?)^```$").FindAllStringSubmatch(text, -1)
	if shapes == nil {
		return
	}
	if len(examples) != len(shapes) {
		t.Errorf("%s: %d examples, want %d", name, len(examples), len(shapes))
		return
	}
	named := map[string]bool{} // keys that the text names, as `key`
	for _, m := range regexp.MustCompile("`([a-z0-9_]+)`").FindAllStringSubmatch(text, -1) {
		named[m[1]] = true
	}
	for i, shape := range shapes {
		shown, may := map[string]bool{}, map[string]bool{}
		d := json.NewDecoder(strings.NewReader(examples[i][1]))
		for {
			var v any
			if err := d.Decode(&v); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("%s: the example is no JSON: %v", name, err)
				return
			}
			if err := fits(v, reflect.TypeOf(shape), shown); err != nil {
				t.Errorf("%s: the example is not what the command prints: %v", name, err)
			}
		}
		keysOf(reflect.TypeOf(shape), may)
		for _, key := range slices.Sorted(maps.Keys(may)) {
			if !shown[key] && !named[key] {
				t.Errorf("%s: nothing says that %q may be there", name, key)
			}
		}
	}
}

// sectionsOf takes the page apart at its second headings, which are names of commands.
func sectionsOf(page string) map[string]string {
	sections := map[string]string{}
	for _, part := range strings.Split("\n"+page, "\n## ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		sections[name] = text
	}
	return sections
}

// withJSON lists the commands that have -o json.
func withJSON(cmd *cobra.Command) (names []string) {
	if f := cmd.Flags().Lookup("output"); f != nil && f.Value.Type() == "text|json" {
		names = append(names, strings.TrimPrefix(cmd.CommandPath(), "streamd "))
	}
	for _, sub := range cmd.Commands() {
		names = append(names, withJSON(sub)...)
	}
	return names
}

// keys are the keys that encoding/json writes of a struct, with the types of their values.
func keys(t reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous && name == "":
			maps.Copy(all, keys(pointedTo(f.Type)))
		case !f.IsExported():
		case name == "":
			all[f.Name] = f.Type
		default:
			all[name] = f.Type
		}
	}
	if t == reflect.TypeFor[runtime.Hold]() {
		all["message"] = reflect.TypeFor[string]() // as its MarshalJSON says
	}
	return all
}

func pointedTo(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// leaf tells that a type writes itself, or is RocketMQ's own and written as brokers do: its keys are not streamd's.
func leaf(t reflect.Type) bool {
	if strings.HasSuffix(t.PkgPath(), "/internal/rocketmq/wire") {
		return true
	}
	return t != reflect.TypeFor[runtime.Hold]() && (t.Implements(reflect.TypeFor[json.Marshaler]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()))
}

// keysOf adds every key that may be written of a type.
func keysOf(t reflect.Type, into map[string]bool) {
	t = pointedTo(t)
	switch {
	case leaf(t):
	case t.Kind() == reflect.Struct:
		for key, of := range keys(t) {
			into[key] = true
			keysOf(of, into)
		}
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Map:
		keysOf(t.Elem(), into)
	}
}

// fits tells whether a value may be written of a type, and adds its keys.
func fits(v any, t reflect.Type, shown map[string]bool) error {
	t = pointedTo(t)
	if v == nil || leaf(t) {
		return nil
	}
	kind := t.Kind()
	switch v := v.(type) {
	case map[string]any:
		if kind != reflect.Struct && kind != reflect.Map {
			return fmt.Errorf("an object where %s is written", t)
		}
		for key, value := range v {
			if kind == reflect.Map {
				if err := fits(value, t.Elem(), shown); err != nil {
					return err
				}
				continue
			}
			of, ok := keys(t)[key]
			if !ok {
				return fmt.Errorf("%s has no key %q", t, key)
			}
			shown[key] = true
			if err := fits(value, of, shown); err != nil {
				return err
			}
		}
	case []any:
		if kind != reflect.Slice {
			return fmt.Errorf("a list where %s is written", t)
		}
		for _, value := range v {
			if err := fits(value, t.Elem(), shown); err != nil {
				return err
			}
		}
	case string:
		if kind != reflect.String && t != reflect.TypeFor[[]byte]() {
			return fmt.Errorf("text %q where %s is written", v, t)
		}
	case bool:
		if kind != reflect.Bool {
			return fmt.Errorf("%t where %s is written", v, t)
		}
	case float64:
		if kind < reflect.Int || kind > reflect.Float64 {
			return fmt.Errorf("a number where %s is written", t)
		}
	}
	return nil
}

// TestJSONDocs_config: the example of config print is the whole config that it is taken from.
func TestJSONDocs_config(t *testing.T) {
	page, err := os.ReadFile(jsonPage)
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?ms)^```json\n(.*?)^```$").FindStringSubmatch(sectionsOf(string(page))["config print"])
	if example == nil {
		t.Fatal("config print has no example")
	}
	file := filepath.Join(t.TempDir(), "streamd.yaml") // JSON is YAML
	if err := os.WriteFile(file, []byte(example[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, talk bytes.Buffer
	if code := run(t.Context(), []string{"config", "print", "-c", file, "-o", "json"}, nil, &out, &talk); code != exitcode.OK {
		t.Fatalf("%d: %s", code, talk.String())
	}
	var printed, shown any
	if err := errors.Join(json.Unmarshal(out.Bytes(), &printed), json.Unmarshal([]byte(example[1]), &shown)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(printed, shown) {
		t.Errorf("config print -o json of the example prints\n%s", out.String())
	}
}
