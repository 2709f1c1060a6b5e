package sdk

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// durationPattern is what time.ParseDuration takes, without a sign.
const durationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`

// schemaOf writes the JSON Schema (2020-12) of a config struct. Keywords of our own: "secret": true beside "writeOnly".
func schemaOf(t reflect.Type) ([]byte, error) {
	if t.Kind() != reflect.Struct || isText(t) || isJSON(t) {
		return nil, fmt.Errorf("config type %s is not a struct", t)
	}
	schema, err := typeSchema(t, nil)
	if err != nil {
		return nil, err
	}
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	return json.Marshal(schema)
}

// typeSchema describes a type; within guards against types that hold themselves.
func typeSchema(t reflect.Type, within []reflect.Type) (map[string]any, error) {
	if slices.Contains(within, t) {
		return nil, fmt.Errorf("type %s holds itself", t)
	}
	switch {
	case isDuration(t):
		return map[string]any{"type": "string", "pattern": durationPattern}, nil
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}, nil
	case isJSON(t):
		return map[string]any{}, nil
	case isText(t):
		return map[string]any{"type": "string"}, nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeSchema(t.Elem(), within)
	case reflect.Struct:
		return structSchema(t, append(within, t))
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return nil, fmt.Errorf("map %s has keys that are no strings", t)
		}
		return elements(t, "object", "additionalProperties", within)
	case reflect.Slice:
		return elements(t, "array", "items", within)
	case reflect.String:
		return map[string]any{"type": "string"}, nil
	case reflect.Bool:
		return map[string]any{"type": "boolean"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}, nil
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}, nil
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return map[string]any{}, nil
		}
	default:
	}
	return nil, fmt.Errorf("type %s cannot be read from a config", t)
}

func elements(t reflect.Type, kind, keyword string, within []reflect.Type) (map[string]any, error) {
	element, err := typeSchema(t.Elem(), within)
	if err != nil {
		return nil, err
	}
	return map[string]any{"type": kind, keyword: element}, nil
}

func structSchema(t reflect.Type, within []reflect.Type) (map[string]any, error) {
	fields, err := fieldsOf(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	properties, required := map[string]any{}, []string{}
	for i := range fields {
		f := &fields[i]
		schema, err := typeSchema(f.typ, within)
		if err != nil {
			return nil, fmt.Errorf("%s, field %s: %w", t, f.name, err)
		}
		f.describe(schema)
		properties[f.name] = schema
		if f.required {
			required = append(required, f.name)
		}
	}
	schema := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema, nil
}

// describe adds what the tags say.
func (f *fieldSpec) describe(schema map[string]any) {
	if f.doc != "" {
		schema["description"] = f.doc
	}
	if f.hasFallback {
		schema["default"] = f.fallback
	}
	if len(f.enum) > 0 {
		schema["enum"] = f.enum
	}
	if f.secret {
		schema["secret"], schema["writeOnly"] = true, true
	}
	lower, upper := "minimum", "maximum"
	switch schema["type"] {
	case "string":
		lower, upper = "minLength", "maxLength"
	case "array":
		lower, upper = "minItems", "maxItems"
	case "object":
		lower, upper = "minProperties", "maxProperties"
	}
	if f.durationKind {
		return // JSON Schema cannot compare durations; the plugin does
	}
	if f.bounded[0] {
		schema[lower] = json.Number(f.min)
	}
	if f.bounded[1] {
		schema[upper] = json.Number(f.max)
	}
}
