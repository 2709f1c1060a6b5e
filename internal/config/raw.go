package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Raw is a plugin's own config: JSON with the place of every value. Two Raws are compared by their JSON. The zero Raw
// was left out and is {}.
type Raw struct {
	json   []byte
	origin *node
	entry  *node // that it belongs to: of a handler, or a stream's allocation
}

// JSON is what the plugin gets. The caller must not change it.
func (r Raw) JSON() []byte {
	if r.json == nil {
		return []byte("{}")
	}
	return r.json
}

// Equal reports whether a plugin would get the same.
func (r Raw) Equal(other Raw) bool { return bytes.Equal(r.JSON(), other.JSON()) }

// Locate is where the value at a JSON pointer was written: the nearest value above it when it is not there itself, and the
// entry when all of it was left out.
func (r Raw) Locate(jsonPointer string) Position {
	if r.origin == nil {
		return r.LocateEntry("")
	}
	n, _ := r.origin.at(pointer(jsonPointer))
	return n.pos
}

// LocateEntry is where the value of another key of the same entry was written, such as "use"; when it was left out, where
// the entry begins.
func (r Raw) LocateEntry(key string) Position {
	return Entry{r.entry}.Locate(key)
}

// LocateKey is where the key at a JSON pointer was written: what to show for a key that should not be there.
func (r Raw) LocateKey(jsonPointer string) Position {
	steps := pointer(jsonPointer)
	if r.origin == nil || len(steps) == 0 {
		return r.Locate(jsonPointer)
	}
	n, whole := r.origin.at(steps[:len(steps)-1])
	if !whole || n.kind != mappingNode {
		return n.pos
	}
	return n.keyPos(steps[len(steps)-1])
}

// UnmarshalYAML takes nothing: Load fills Raw from its own nodes, which have the positions.
func (r *Raw) UnmarshalYAML(*yaml.Node) error { return nil }

// newRaw renders a node as JSON and reports what JSON cannot say.
func newRaw(n, entry *node, ps *problems) Raw {
	if n == nil || n.isNull() {
		return Raw{origin: n, entry: entry}
	}
	value, _ := json.Marshal(n.jsonValue(ps)) //nolint:errchkjson // maps, slices, strings, bools and checked numbers always marshal
	return Raw{json: value, origin: n, entry: entry}
}

// jsonValue is the node as encoding/json sees values; numbers keep their text. ps may be nil.
func (n *node) jsonValue(ps *problems) any {
	switch n.kind {
	case mappingNode:
		m := make(map[string]any, len(n.entries))
		for _, e := range n.entries {
			m[e.key] = e.value.jsonValue(ps)
		}
		return m
	case listNode:
		l := make([]any, len(n.items))
		for i, it := range n.items {
			l[i] = it.jsonValue(ps)
		}
		return l
	case scalarNode:
	}
	switch n.tag {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.text, "true")
	case "!!int", "!!float":
		num, err := jsonNumber(n.tag, n.text)
		if err != nil {
			if ps != nil {
				ps.add(n.pos, "quotes around it, if it is a text", "%s %v", n.shown(), err)
			}
			return n.text
		}
		return num
	}
	return n.text
}

var (
	errLeadingZero = errors.New("has a leading zero: a number to some, an octal to others")
	errNotJSON     = errors.New("is no number in JSON")
)

// jsonNumber keeps a decimal as written and rewrites the other forms YAML knows.
func jsonNumber(tag, text string) (json.Number, error) {
	plus := strings.TrimPrefix(text, "+")
	if json.Valid([]byte(plus)) {
		return json.Number(plus), nil
	}
	clean := strings.ReplaceAll(plus, "_", "")
	if tag == "!!int" {
		digits := strings.TrimPrefix(clean, "-")
		if len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
			return "", errLeadingZero
		}
		i, ok := new(big.Int).SetString(clean, 0)
		if !ok {
			return "", errNotJSON
		}
		return json.Number(i.String()), nil
	}
	f, err := strconv.ParseFloat(clean, 64)
	if err != nil {
		return "", errNotJSON
	}
	out, err := json.Marshal(f)
	if err != nil {
		return "", fmt.Errorf("%w", errNotJSON)
	}
	return json.Number(out), nil
}

// ParseRaw reads a component's config from the text of a YAML or JSON file. Errors are *InvalidError.
func ParseRaw(file string, text []byte) (Raw, error) {
	var ps problems
	root := parse(file, text, &ps)
	if root == nil {
		return Raw{}, ps.err(nil)
	}
	ip := interpolator{ps: &ps}
	ip.all(root)
	r := newRaw(root, nil, &ps)
	return r, ps.err(nil)
}
