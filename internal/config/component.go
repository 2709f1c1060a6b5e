package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Check holds a plugin's config against the JSON Schema its component declares and returns every breach at its place.
// An empty schema allows everything. err is a schema that cannot be used: the component's fault, not the config's.
func (r Raw) Check(schema []byte) ([]Problem, error) {
	if len(strings.TrimSpace(string(schema))) == 0 {
		return nil, nil
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(r.JSON())))
	if err != nil {
		return nil, fmt.Errorf("reading a plugin's config: %w", err)
	}
	bad, err := breaches(schema, value)
	if err != nil {
		return nil, err
	}
	var ps problems
	for _, e := range bad {
		r.describe(e, schema, &ps)
	}
	return ps.sorted(nil), nil
}

func (r Raw) describe(e *jsonschema.ValidationError, schema []byte, ps *problems) {
	where := pointerOf(e.InstanceLocation)
	name := dotted(e.InstanceLocation)
	if name == "" {
		name = "config"
	}
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, key := range k.Properties {
			known := schemaKeys(schema, e.InstanceLocation)
			ps.add(r.LocateKey(where+"/"+escapePointer(key)), cmp.Or(nearest(key, known), oneOf(known)), "unknown key %q", key)
		}
	case *kind.Required:
		for _, key := range k.Missing {
			ps.add(r.Locate(where), key+": …", "%s lacks the key %q", name, key)
		}
	case *kind.Type:
		ps.add(r.Locate(where), "", "%s is %s, not %s", name, k.Got, oneOf(k.Want))
	case *kind.Enum:
		ps.add(r.Locate(where), fmt.Sprint(k.Want...), "%s has a value that is not allowed", name)
	case *kind.Minimum:
		ps.add(r.Locate(where), decimal(k.Want)+" or more", "%s: %s is out of range", name, decimal(k.Got))
	case *kind.Maximum:
		ps.add(r.Locate(where), decimal(k.Want)+" or less", "%s: %s is out of range", name, decimal(k.Got))
	default:
		ps.add(r.Locate(where), "", "%s: %s", name, reason(e))
	}
}

// decimal writes a number as people do: RatString would write 1/2.
func decimal(n *big.Rat) string {
	f, _ := n.Float64()
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// Diagnose places what a component itself says of its config, and names the key that it speaks of: a key that is missing
// has no place of its own in the file.
func (r Raw) Diagnose(jsonPointer, text, try string) Problem {
	return Problem{Where: r.Locate(jsonPointer), What: keyed(pointer(jsonPointer), text), Try: try, Said: true}
}

// keyed puts the key before what is said of it. A text that quotes the key already, as of one that is missing or unknown,
// gets only the keys above it.
func keyed(path []string, text string) string {
	if n := len(path); n > 0 && strings.Contains(text, strconv.Quote(path[n-1])) {
		path = path[:n-1]
	}
	if len(path) == 0 {
		return text
	}
	return strings.Join(path, ".") + ": " + text
}

// By says whose config a problem is in.
func (p Problem) By(who string) Problem {
	p.What = who + ": " + p.What
	return p
}

func pointerOf(path []string) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteString("/" + escapePointer(p))
	}
	return b.String()
}

func escapePointer(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}

// schemaKeys are the keys that a schema without references declares for the object at a path.
func schemaKeys(schema []byte, path []string) []string {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Items      json.RawMessage            `json:"items"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil // the schema was compiled before: this form of it lists no keys
	}
	switch {
	case len(path) == 0:
		return slices.Sorted(maps.Keys(s.Properties))
	case s.Properties[path[0]] != nil:
		return schemaKeys(s.Properties[path[0]], path[1:])
	}
	return schemaKeys(s.Items, path[1:])
}
