package config

import (
	"encoding/json"
	"fmt"
)

const (
	durationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	sizePattern     = `^[0-9]+(B|KiB|MiB|GiB)$`
)

// Schema is the JSON Schema (2020-12, and readable by draft-07 tools) of a config file, for editors and for validate.
func Schema() ([]byte, error) {
	out, err := json.MarshalIndent(describeConfig().document(), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("rendering the schema: %w", err)
	}
	return append(out, '\n'), nil
}

// Keys are all keys of a config file, entries of lists without an index: streams.batch.max.
func Keys() []string {
	var keys []string
	var walk func(path string, f *field)
	walk = func(path string, f *field) {
		if f.items != nil {
			walk(path, f.items)
		}
		for _, c := range f.fields {
			key := c.key
			if path != "" {
				key = path + "." + c.key
			}
			keys = append(keys, key)
			walk(key, c)
		}
	}
	walk("", describeConfig())
	return keys
}

func (f *field) document() map[string]any {
	s := f.schema()
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "streamd configuration"
	properties(s)["$schema"] = map[string]any{"type": "string", "description": "Ignored; for editors."}
	return s
}

func properties(s map[string]any) map[string]any {
	p, _ := s["properties"].(map[string]any)
	return p
}

// schema renders a field.
func (f *field) schema() map[string]any {
	s := map[string]any{}
	switch f.kind {
	case objectField:
		f.objectSchema(s)
	case listField:
		s["type"], s["items"] = "array", f.items.schema()
		if f.required {
			s["minItems"] = 1
		}
	case textField:
		s["type"] = "string"
		if f.required {
			s["minLength"] = 1
		}
	case intField:
		s["type"] = "integer"
	case numberField:
		s["type"] = "number"
	case boolField:
		s["type"] = "boolean"
	case durationField:
		s["type"], s["pattern"] = "string", durationPattern
	case sizeField:
		s["type"], s["pattern"] = "string", sizePattern
	case textMapField:
		s["type"], s["additionalProperties"] = "object", map[string]any{"type": "string"}
	case serversField:
		s["type"], s["items"] = []string{"string", "array"}, map[string]any{"type": "string"}
	case startFromField:
		startFromSchema(s)
	case rawField:
		s["type"] = "object"
	}
	f.annotate(s)
	return s
}

func (f *field) objectSchema(s map[string]any) {
	props := map[string]any{}
	var required []string
	for _, c := range f.fields {
		props[c.key] = c.schema()
		if c.required {
			required = append(required, c.key)
		}
	}
	s["type"], s["properties"], s["additionalProperties"] = "object", props, false
	if len(required) > 0 {
		s["required"] = required
	}
}

func startFromSchema(s map[string]any) {
	s["type"] = []string{"string", "object"}
	s["pattern"] = "^(first|last)$"
	s["properties"] = map[string]any{"timestamp": map[string]any{
		"type": "string", "minLength": 1, "description": "RFC 3339, for instance 2026-11-01T00:00:00Z.",
	}}
	s["required"] = []string{"timestamp"}
	s["additionalProperties"] = false
}

func (f *field) annotate(s map[string]any) {
	if f.doc != "" {
		s["description"] = f.doc
	}
	if len(f.enum) > 0 {
		s["enum"] = f.enum
	}
	if f.pattern != "" {
		s["pattern"] = "^" + f.pattern + "$"
	}
	if f.isSecret {
		s["writeOnly"] = true
	}
	if f.kind == intField || f.kind == numberField {
		if f.min != "" {
			s["minimum"] = json.Number(f.min)
		}
		if f.max != "" {
			s["maximum"] = json.Number(f.max)
		}
	}
	if f.hasFallback {
		s["default"] = f.fallbackValue()
	}
}

func (f *field) fallbackValue() any {
	switch f.kind {
	case intField, numberField:
		return json.Number(f.fallback)
	case boolField:
		return f.fallback == "true"
	default:
		return f.fallback
	}
}
