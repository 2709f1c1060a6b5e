package config

import (
	"slices"
	"strings"
)

// nodeKind is the shape of a node.
type nodeKind uint8

const (
	scalarNode nodeKind = iota + 1
	mappingNode
	listNode
)

// node is a parsed YAML value with its position and where its text came from. Aliases and merge keys are expanded.
type node struct {
	kind  nodeKind
	tag   string // scalars: !!str, !!int, !!float, !!bool, !!null, !!timestamp
	text  string // scalars: the value
	plain bool   // scalars: written without quotes
	pos   Position

	entries []entry // mappings, in the order written
	items   []*node // lists

	// written is the text before interpolation, "" when there was none. Such a value is secret by provenance.
	written string
	// byDefault says that nobody wrote this value.
	byDefault bool
}

// entry is one key of a mapping.
type entry struct {
	key   string
	pos   Position
	value *node
}

func newMapping(pos Position) *node { return &node{kind: mappingNode, pos: pos} }

func newText(text string, pos Position) *node {
	return &node{kind: scalarNode, tag: "!!str", text: text, pos: pos}
}

// get returns the value of a key, nil when n is no mapping or lacks it.
func (n *node) get(key string) *node {
	if n == nil || n.kind != mappingNode {
		return nil
	}
	for i := range n.entries {
		if n.entries[i].key == key {
			return n.entries[i].value
		}
	}
	return nil
}

// set replaces or appends a key.
func (n *node) set(key string, pos Position, value *node) {
	for i := range n.entries {
		if n.entries[i].key == key {
			n.entries[i].value, n.entries[i].pos = value, pos
			return
		}
	}
	n.entries = append(n.entries, entry{key: key, pos: pos, value: value})
}

// remove takes a key out.
func (n *node) remove(key string) {
	n.entries = slices.DeleteFunc(n.entries, func(e entry) bool { return e.key == key })
}

// keyPos is where a key was written.
func (n *node) keyPos(key string) Position {
	for i := range n.entries {
		if n.entries[i].key == key {
			return n.entries[i].pos
		}
	}
	return n.pos
}

// list returns the items of the list under key, nil when there is none.
func (n *node) list(key string) []*node {
	if l := n.get(key); l != nil && l.kind == listNode {
		return l.items
	}
	return nil
}

// str returns the text under key; ok is false when it is absent, empty or no scalar.
func (n *node) str(key string) (value *node, ok bool) {
	v := n.get(key)
	if v == nil || v.kind != scalarNode || v.tag == "!!null" || v.text == "" {
		return nil, false
	}
	return v, true
}

// isNull reports a key without a value.
func (n *node) isNull() bool { return n.kind == scalarNode && n.tag == "!!null" }

// shown is the text for an error message: what the user wrote, never what was injected.
func (n *node) shown() string {
	switch {
	case n.written != "":
		return n.written
	case n.kind == mappingNode:
		return "a mapping"
	case n.kind == listNode:
		return "a list"
	case n.isNull():
		return "nothing"
	}
	return n.text
}

// clone copies a tree, so that one part may be used in several places.
func (n *node) clone() *node {
	c := *n
	c.entries = make([]entry, len(n.entries))
	for i, e := range n.entries {
		c.entries[i] = entry{key: e.key, pos: e.pos, value: e.value.clone()}
	}
	c.items = make([]*node, len(n.items))
	for i, it := range n.items {
		c.items[i] = it.clone()
	}
	return &c
}

// at walks a path of keys and indexes, as in a JSON pointer. It returns the deepest node that exists, and whether that
// is the one asked for.
func (n *node) at(path []string) (found *node, whole bool) {
	for _, step := range path {
		next := n.step(step)
		if next == nil {
			return n, false
		}
		n = next
	}
	return n, true
}

func (n *node) step(key string) *node {
	if n.kind != listNode {
		return n.get(key)
	}
	i := 0
	for _, c := range key {
		if c < '0' || c > '9' || i > len(n.items) {
			return nil
		}
		i = i*10 + int(c-'0')
	}
	if key == "" || i >= len(n.items) {
		return nil
	}
	return n.items[i]
}

// visit calls f for n and everything below it.
func (n *node) visit(f func(*node)) {
	f(n)
	for _, e := range n.entries {
		e.value.visit(f)
	}
	for _, it := range n.items {
		it.visit(f)
	}
}

// pointer splits an RFC 6901 JSON pointer.
func pointer(p string) []string {
	if p == "" || p == "/" {
		return nil
	}
	steps := strings.Split(strings.TrimPrefix(p, "/"), "/")
	for i, s := range steps {
		steps[i] = strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
	}
	return steps
}
