package config

import (
	"fmt"
	"strings"
)

// Reference is the page docs/reference/configuration.md.
func Reference() []byte {
	var b strings.Builder
	b.WriteString(referenceHead)
	root := describeConfig()
	b.WriteString("\n## Top level\n\n")
	table(&b, "", root)
	for _, f := range root.fields {
		section(&b, f.key, f)
	}
	return []byte(b.String())
}

const referenceHead = `# Configuration

<!-- Generated from internal/config by "go generate ./internal/config". Do not edit. -->

A config is one or more YAML files. "streamd validate -c FILE" checks it, "streamd validate --print" shows what is in
force, "streamd validate --schema" prints the JSON Schema for editors.

Sources, the stronger first: flags, ` + "`--set streams[orders].batch.max=64`" + `, environment (scalars outside lists), files, defaults.
Several ` + "`-c`" + ` and directories are merged: lists concatenate, and the same name twice is an error; ` + "`--overlay FILE`" + ` changes entries by name, and its ` + "`null`" + ` takes a key away.
An empty environment variable counts as unset.

In any value: ` + "`${env:NAME}`, `${env:NAME:-default}`, `${file:PATH}`" + ` (one newline at the end is dropped), and ` + "`$${`" + ` for the two characters themselves.
Durations carry a unit (` + "`60s`, `1m30s`" + `), sizes too (` + "`256KiB`, `16MiB`" + `).
`

func section(b *strings.Builder, path string, f *field) {
	if f.kind == listField && f.items.kind == objectField {
		fmt.Fprintf(b, "\n## `%s[]`\n\n%s\n\n", path, f.doc)
		table(b, path, f.items)
		nested(b, path+"[]", f.items)
		return
	}
	if f.kind == objectField {
		fmt.Fprintf(b, "\n## `%s`\n\n%s\n\n", path, f.doc)
		table(b, path, f)
		nested(b, path, f)
	}
}

func nested(b *strings.Builder, path string, f *field) {
	if path == "defaults" {
		return // the same keys as in a stream
	}
	for _, c := range f.fields {
		section(b, path+"."+c.key, c)
	}
}

func table(b *strings.Builder, path string, f *field) {
	b.WriteString("| key | value | default | |\n|---|---|---|---|\n")
	for _, c := range f.fields {
		doc := c.doc
		if c.required {
			doc = "**Required.** " + doc
		}
		if c.isSecret {
			doc += " Secret: never printed."
		}
		if c.isScalar() && !strings.Contains(path, "[") && !isList(path) {
			doc += " `" + EnvName(strings.TrimPrefix(path+"."+c.key, ".")) + "`"
		}
		fallback := ""
		if c.hasFallback {
			fallback = "`" + c.fallback + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", c.key, c.values(), fallback, strings.ReplaceAll(doc, "|", `\|`))
	}
}

// isList reports a path that is a list's own section, below which no variable reaches.
func isList(path string) bool {
	first, _, _ := strings.Cut(path, ".")
	f := describeConfig().child(first)
	return f != nil && f.kind == listField
}

// values says in a word or two what a key takes.
func (f *field) values() string {
	if len(f.enum) > 0 {
		return "`" + strings.Join(f.enum, "`, `") + "`"
	}
	bounds := ""
	if f.min != "" || f.max != "" {
		bounds = ", " + f.rangeHint()
	}
	switch f.kind {
	case objectField:
		return "mapping"
	case listField:
		if f.items.kind == objectField {
			return "list of mappings"
		}
		return "list of texts"
	case intField:
		return "whole number" + bounds
	case numberField:
		return "number" + bounds
	case boolField:
		return "`true`, `false`"
	case durationField:
		return "duration" + bounds
	case sizeField:
		return "size" + bounds
	case rawField:
		return "mapping, the component's own"
	case textMapField:
		return "names and texts"
	case serversField:
		return "text, or list of texts"
	case startFromField:
		return "`first`, `last`, mapping"
	case textField:
	}
	return "text"
}
