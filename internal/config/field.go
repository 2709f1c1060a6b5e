package config

import (
	"reflect"
	"slices"
	"strings"
	"time"
)

// fieldKind is what a key takes.
type fieldKind uint8

const (
	objectField fieldKind = iota + 1
	listField
	textField
	intField
	numberField
	boolField
	durationField
	sizeField
	rawField       // a plugin's own config
	textMapField   // names and texts chosen by the user
	serversField   // a text or a list of texts
	startFromField // first, last, {timestamp: ...}
)

// field describes one key as the struct tags say.
type field struct {
	key                string
	kind               fieldKind
	doc                string
	fallback           string // default, as written in a file
	hasFallback        bool
	enum, later        []string
	min, max, pattern  string
	required, isSecret bool
	optional           bool     // objects: one that nobody wrote stays out
	fields             []*field // objects
	items              *field   // lists
}

// describeConfig reads the tags of Config.
func describeConfig() *field {
	return &field{kind: objectField, fields: structFields(reflect.TypeFor[Config]())}
}

func structFields(t reflect.Type) []*field {
	var fs []*field
	for sf := range t.Fields() {
		key, options, _ := strings.Cut(sf.Tag.Get("yaml"), ",")
		if key == "-" {
			continue // not written in files
		}
		if options == "inline" {
			fs = append(fs, structFields(sf.Type)...)
			continue
		}
		f := newField(sf.Type)
		f.key, f.doc = key, sf.Tag.Get("doc")
		f.fallback, f.hasFallback = sf.Tag.Lookup("default")
		f.enum, f.later = words(sf.Tag.Get("enum")), words(sf.Tag.Get("later"))
		f.min, f.max, f.pattern = sf.Tag.Get("min"), sf.Tag.Get("max"), sf.Tag.Get("pattern")
		f.required, f.isSecret = sf.Tag.Get("required") == "true", sf.Tag.Get("secret") == "true"
		fs = append(fs, f)
	}
	return fs
}

func newField(t reflect.Type) *field {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return &field{kind: durationField}
	case reflect.TypeFor[Size]():
		return &field{kind: sizeField}
	case reflect.TypeFor[Raw]():
		return &field{kind: rawField}
	case reflect.TypeFor[NameServers]():
		return &field{kind: serversField}
	case reflect.TypeFor[StartFrom]():
		return &field{kind: startFromField}
	}
	switch t.Kind() {
	case reflect.Struct:
		return &field{kind: objectField, fields: structFields(t)}
	case reflect.Pointer:
		return &field{kind: objectField, fields: structFields(t.Elem()), optional: true}
	case reflect.Slice:
		return &field{kind: listField, items: newField(t.Elem())}
	case reflect.Map:
		return &field{kind: textMapField}
	case reflect.Int:
		return &field{kind: intField}
	case reflect.Float64:
		return &field{kind: numberField}
	case reflect.Bool:
		return &field{kind: boolField}
	default:
		return &field{kind: textField}
	}
}

func words(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// child is the field below f that a step of a path leads to; nil where the user's own names begin.
func (f *field) child(step string) *field {
	if f == nil {
		return nil
	}
	if f.kind == listField {
		return f.items
	}
	for _, c := range f.fields {
		if c.key == step {
			return c
		}
	}
	return nil
}

func (f *field) at(path []string) *field {
	for _, s := range path {
		f = f.child(s)
	}
	return f
}

// keys are the names of an object's keys.
func (f *field) keys() []string {
	ks := make([]string, len(f.fields))
	for i, c := range f.fields {
		ks[i] = c.key
	}
	return ks
}

// isScalar reports a field that takes one value which a flag or variable can carry.
func (f *field) isScalar() bool {
	switch f.kind {
	case textField, intField, numberField, boolField, durationField, sizeField:
		return true
	default:
		return false
	}
}

// scalars calls visit for every scalar outside lists, with its path.
func (f *field) scalars(visit func(path []string, f *field)) { f.scalarsBelow(nil, visit) }

func (f *field) scalarsBelow(path []string, visit func([]string, *field)) {
	for _, c := range f.fields {
		p := slices.Concat(path, []string{c.key})
		switch {
		case c.isScalar():
			visit(p, c)
		case c.kind == objectField:
			c.scalarsBelow(p, visit)
		}
	}
}

// fallbackNode is the default as a node.
func (f *field) fallbackNode() *node {
	n := newText(f.fallback, Position{Source: "default"})
	n.byDefault = true
	switch f.kind {
	case intField, numberField, boolField:
		n.tag = resolveTag(f.fallback)
	default: // a text
	}
	return n
}

// fill adds what the tree leaves out, from the tags. Entries of lists are filled, lists themselves never.
func (f *field) fill(n *node) {
	switch {
	case f.kind == listField && n.kind == listNode:
		for _, it := range n.items {
			f.items.fill(it)
		}
	case f.kind == objectField && n.kind == mappingNode:
		for _, c := range f.fields {
			v := n.get(c.key)
			if v == nil {
				if v = c.absent(); v == nil {
					continue
				}
				n.set(c.key, v.pos, v)
			}
			c.fill(v)
		}
	}
}

func (f *field) absent() *node {
	switch {
	case f.hasFallback:
		return f.fallbackNode()
	case f.kind == objectField && !f.optional:
		n := newMapping(Position{Source: "default"})
		n.byDefault = true
		return n
	}
	return nil
}

// settle makes the tree's values fit their fields where only the writing differs: an empty section is {}, an injected
// value takes the type its field wants.
func (f *field) settle(n *node) {
	if n.kind == scalarNode && n.written != "" {
		switch f.kind {
		case intField, numberField, boolField:
			n.tag = resolveTag(n.text)
		case textField, durationField, sizeField, serversField, startFromField:
			n.tag = "!!str"
		default: // told by the schema
		}
	}
	switch f.kind {
	case textMapField:
		for _, e := range n.entries {
			if e.value.written != "" {
				e.value.tag = "!!str"
			}
		}
	case listField:
		for _, it := range n.items {
			f.items.settle(it)
		}
	case objectField:
		f.settleObject(n)
	default: // scalars are done; a plugin's config is left as written
	}
}

func (f *field) settleObject(n *node) {
	var empty []string
	for _, e := range n.entries {
		c := f.child(e.key)
		if c == nil {
			continue
		}
		if e.value.isNull() && c.optional {
			*e.value = *newMapping(e.value.pos) // its defaults, as if it were {}
			continue
		}
		if e.value.isNull() && (c.kind == objectField || c.kind == listField || c.kind == textMapField || c.kind == rawField) {
			empty = append(empty, e.key)
			continue
		}
		c.settle(e.value)
	}
	for _, k := range empty {
		n.remove(k)
	}
}
