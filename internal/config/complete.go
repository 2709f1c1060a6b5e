package config

import "os"

// namesrvEnv is RocketMQ's own variable for name servers.
const namesrvEnv = "NAMESRV_ADDR"

// complete adds what may be left out: the broker from the environment, values from defaults:, what has only one possible
// answer, and the built-in defaults.
func complete(root *node, f *field) {
	addBroker(root)
	if d := root.get("defaults"); d != nil && d.kind == mappingNode {
		for _, s := range root.list("streams") {
			if s.kind == mappingNode {
				inherit(s, d)
			}
		}
	}
	for _, h := range root.list("handlers") {
		onlyOne(root, h, "plugin", "plugins")
	}
	for _, s := range root.list("streams") {
		onlyOne(root, s, "broker", "brokers")
		onlyOne(root, s, "handler", "handlers")
	}
	levelsOf(root)
	f.fill(root)
	for _, s := range root.list("streams") {
		a := s.get("allocation")
		if a != nil && a.kind == mappingNode && a.get("strategy") == nil && a.get("plugin") == nil {
			n := newText("averagely", Position{Source: "default"})
			n.byDefault = true
			a.set("strategy", n.pos, n)
		}
	}
}

// addBroker takes NAMESRV_ADDR where the config names no servers.
func addBroker(root *node) {
	addr := os.Getenv(namesrvEnv)
	if addr == "" {
		return
	}
	pos := Position{Source: "environment " + namesrvEnv}
	list := root.get("brokers")
	if list == nil {
		b := newMapping(pos)
		b.set("name", pos, newText("default", pos))
		list = &node{kind: listNode, pos: pos, items: []*node{b}}
		root.set("brokers", pos, list)
	}
	for _, b := range list.items {
		if b.kind == mappingNode && b.get("name_servers") == nil && b.get("embedded") == nil {
			b.set("name_servers", pos, newText(addr, pos))
		}
	}
}

// inherit copies what a stream leaves out from defaults.
func inherit(into, from *node) {
	for _, e := range from.entries {
		switch old := into.get(e.key); {
		case old == nil:
			into.set(e.key, e.pos, e.value.clone())
		case old.kind == mappingNode && e.value.kind == mappingNode:
			inherit(old, e.value)
		}
	}
}

// onlyOne fills a reference that has one possible answer.
func onlyOne(root, it *node, key, section string) {
	if it.kind != mappingNode || it.get(key) != nil {
		return
	}
	var only *node
	for _, c := range root.list(section) {
		name, ok := c.str("name")
		if !ok || only != nil && only.text != name.text {
			return
		}
		only = name
	}
	if only != nil {
		n := newText(only.text, only.pos)
		n.byDefault = true
		it.set(key, n.pos, n)
	}
}
