package config

import (
	"slices"
	"strings"
)

// step is one part of a --set path: a key, and the name of an entry when the key is a list.
type step struct {
	key, name string
	hasName   bool
}

// parseSet splits "streams[orders].batch.max=64". Names in brackets may hold dots.
func parseSet(s string) (path []step, value string, ok bool) {
	rest := s
	for {
		end := strings.IndexAny(rest, ".[=")
		if end <= 0 {
			return nil, "", false
		}
		st := step{key: rest[:end]}
		rest = rest[end:]
		if rest[0] == '[' {
			closing := strings.IndexByte(rest, ']')
			if closing < 2 {
				return nil, "", false
			}
			st.name, st.hasName = rest[1:closing], true
			rest = rest[closing+1:]
		}
		path = append(path, st)
		switch {
		case strings.HasPrefix(rest, "="):
			return path, rest[1:], true
		case strings.HasPrefix(rest, "."):
			rest = rest[1:]
		default:
			return nil, "", false
		}
	}
}

// applySet applies each --set inside lists to the tree and returns those outside lists, by key, for the layers.
func applySet(root *node, f *field, sets []string, ps *problems) map[string]*node {
	outside := map[string]*node{}
	for _, s := range sets {
		path, value, ok := parseSet(s)
		key, _, _ := strings.Cut(s, "=")
		pos := Position{Source: "--set " + key}
		if !ok {
			ps.add(Position{Source: "--set"}, "streams[NAME].batch.max=64 or shutdown_timeout=10s", "%q is no KEY=VALUE", key)
			continue
		}
		if n, c := applyOne(root, f, path, value, pos, ps); n != nil && c != nil {
			outside[key] = n
		}
	}
	return outside
}

// applyOne walks tree and fields together. It returns the value when it belongs to the layers instead of the tree.
func applyOne(root *node, f *field, path []step, value string, pos Position, ps *problems) (*node, *field) {
	spec, n, inList := f, root, false
	for i, st := range path {
		c := f.child(st.key)
		opaque := f != nil && (f.kind == rawField || f.kind == textMapField) || f == nil
		if c == nil && !opaque {
			unknownSetKey(spec, f, path[:i+1], pos, ps)
			return nil, nil
		}
		if i == len(path)-1 && !st.hasName {
			return setScalar(n, c, st.key, value, pos, inList, ps)
		}
		if c != nil && c.kind == listField && !st.hasName {
			ps.add(pos, st.key+"[NAME].KEY=VALUE", "%s is a list", st.key)
			return nil, nil
		}
		next := n.get(st.key)
		if st.hasName {
			inList = true
			if next = pick(next, c, st, pos, ps); next == nil {
				return nil, nil
			}
			c = c.items
		} else if next == nil || next.isNull() {
			next = newMapping(pos)
			n.set(st.key, pos, next)
		}
		n, f = next, c
	}
	ps.add(pos, "a key below the entry", "an entry is no scalar")
	return nil, nil
}

// unknownSetKey reports the last step of a path, which f does not have.
func unknownSetKey(spec, f *field, path []step, pos Position, ps *problems) {
	last := len(path) - 1
	key := path[last].key
	near, sure := f.like(key)
	if sure {
		ps.add(pos, near, "unknown key %q", key)
		return
	}
	var level, given []string
	for _, st := range path[:last] {
		if st.hasName {
			level, given = append(level, st.key+"[]"), append(given, st.key+"["+st.name+"]")
		} else {
			level, given = append(level, st.key), append(given, st.key)
		}
	}
	switch what, under := spec.misplaced(key, level); {
	case under != nil:
		rest := strings.ReplaceAll(strings.Join(slices.Concat(under.path[len(level):], []string{under.key}), "."), "[]", "[NAME]")
		ps.add(pos, strings.Join(append(given, rest), ".")+"=…", "unknown key %q: %s", key, what)
	case what != "":
		ps.add(pos, "", "unknown key %q: %s", key, what)
	default:
		ps.add(pos, near, "unknown key %q", key)
	}
}

func setScalar(n *node, c *field, key, value string, pos Position, inList bool, ps *problems) (*node, *field) {
	if c == nil { // the user's own key below config: or env:
		v := newText(value, pos)
		v.tag = resolveTag(value)
		if n.kind == mappingNode {
			n.set(key, pos, v)
		}
		return nil, nil
	}
	if !c.isScalar() && c.kind != startFromField && c.kind != serversField {
		try := key + ".KEY=VALUE"
		if c.kind == listField {
			try = key + "[NAME].KEY=VALUE"
		}
		ps.add(pos, try, "%s is %s, and --set sets single values", key, c.noun())
		return nil, nil
	}
	v := outsideScalar(c, value, pos)
	if !inList {
		return v, c
	}
	n.set(key, pos, v)
	return nil, nil
}

// pick finds the entry of a list that a --set names.
func pick(list *node, c *field, st step, pos Position, ps *problems) *node {
	if c == nil || c.kind != listField || c.items.kind != objectField {
		ps.add(pos, "the key without ["+st.name+"]", "%s is no list of named entries", st.key)
		return nil
	}
	if it := find(list, st.name); it != nil {
		return it
	}
	var names []string
	if list != nil {
		for _, it := range list.items {
			if n, ok := it.str("name"); ok {
				names = append(names, n.text)
			}
		}
	}
	try := nearest(st.name, names)
	if try == "" {
		try = oneOf(names)
	}
	ps.add(pos, try, "no entry of %s is named %q", st.key, st.name)
	return nil
}
