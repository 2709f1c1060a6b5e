package config

import (
	"os"
	"slices"
)

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
	handlers := handlerPlugins(root)
	for _, h := range root.list("handlers") {
		onlyOne(handlers, h, "plugin")
	}
	for _, s := range root.list("streams") {
		onlyOne(root.list("brokers"), s, "broker")
		onlyOne(root.list("handlers"), s, "handler")
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

// handlerPlugins are the plugins that a handler may mean when it names none: those that no stream names for its strategy.
// When all of them are named there, all may be meant.
func handlerPlugins(root *node) []*node {
	divides := map[string]bool{}
	for _, s := range root.list("streams") {
		if p, ok := s.get("allocation").str("plugin"); ok {
			divides[p.text] = true
		}
	}
	all := root.list("plugins")
	others := slices.DeleteFunc(slices.Clone(all), func(p *node) bool {
		name, ok := p.str("name")
		return ok && divides[name.text]
	})
	if len(others) == 0 {
		return all
	}
	return others
}

// onlyOne fills a reference that has one possible answer among the entries of a section.
func onlyOne(entries []*node, it *node, key string) {
	if it.kind != mappingNode || it.get(key) != nil {
		return
	}
	var only *node
	for _, c := range entries {
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
