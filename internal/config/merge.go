package config

// merge adds another file: mappings merge, lists concatenate, a later scalar wins. It reports values of unlike shape.
func merge(into, from *node, ps *problems) {
	for _, e := range from.entries {
		old := into.get(e.key)
		switch {
		case old == nil || old.isNull():
			into.set(e.key, e.pos, e.value)
		case e.value.isNull():
		case old.kind != e.value.kind:
			ps.add(e.value.pos, "the same form in both files", "%q is %s here and %s at %s", e.key, e.value.describe(), old.describe(), old.pos)
		case old.kind == mappingNode:
			merge(old, e.value, ps)
		case old.kind == listNode:
			old.items = append(old.items, e.value.items...)
		default:
			into.set(e.key, e.pos, e.value)
		}
	}
}

// overlay changes what is there: items of a list that have the same name are merged, new names are added, other lists
// and all scalars are replaced. A key whose value is null is taken away, as if nobody had written it: so an overlay can put
// one of two keys that exclude each other into the place of the other.
func overlay(into, from *node) {
	for _, e := range from.entries {
		old := into.get(e.key)
		switch {
		case e.value.isNull():
			into.remove(e.key)
		case old != nil && old.kind == mappingNode && e.value.kind == mappingNode:
			overlay(old, e.value)
		case old != nil && old.kind == listNode && e.value.kind == listNode && named(e.value):
			overlayList(old, e.value)
		default:
			into.set(e.key, e.pos, e.value)
		}
	}
}

func overlayList(into, from *node) {
	for _, it := range from.items {
		name, _ := it.str("name")
		if old := find(into, name.text); old != nil {
			overlay(old, it)
			continue
		}
		into.items = append(into.items, it)
	}
}

// named reports whether every item of a list is a mapping with a name.
func named(list *node) bool {
	for _, it := range list.items {
		if _, ok := it.str("name"); !ok {
			return false
		}
	}
	return len(list.items) > 0
}

// find returns the item of a list with that name, or nil.
func find(list *node, name string) *node {
	if list == nil {
		return nil
	}
	for _, it := range list.items {
		if n, ok := it.str("name"); ok && n.text == name {
			return it
		}
	}
	return nil
}

// duplicateNames reports items of one list that share a name.
func duplicateNames(root *node, section string, ps *problems) {
	first := map[string]Position{}
	for _, it := range root.list(section) {
		n, ok := it.str("name")
		if !ok {
			continue
		}
		if at, dup := first[n.text]; dup {
			ps.add(n.pos, "another name, or --overlay for a file that changes entries", "%s has the name %q twice, first at %s", section, n.text, at)
			continue
		}
		first[n.text] = n.pos
	}
}
