package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// redacted stands for a secret that was written out. An injected value is shown as the reference that injected it.
const redacted = "[redacted]"

// YAML is the effective configuration, all defaults filled in, secrets redacted.
func (l *Loaded) YAML() ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(l.redact(l.root, l.spec).yaml()); err != nil {
		return nil, fmt.Errorf("rendering the configuration: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("rendering the configuration: %w", err)
	}
	return out.Bytes(), nil
}

// JSON is YAML in JSON.
func (l *Loaded) JSON() (json.RawMessage, error) {
	out, err := json.Marshal(l.redact(l.root, l.spec).jsonValue(nil))
	if err != nil {
		return nil, fmt.Errorf("rendering the configuration: %w", err)
	}
	return out, nil
}

// redact copies the tree without secrets. Below a secret field everything is secret.
func (l *Loaded) redact(n *node, f *field) *node {
	c := n.clone()
	conceal(c, f, false)
	hide(c, n, l.marked)
	return c
}

// hide takes out of a copy what is marked in the tree it was made of.
func hide(c, n *node, marked []*node) {
	if slices.Contains(marked, n) && n.written == "" {
		c.tag, c.text = "!!str", redacted
	}
	for i := range n.entries {
		hide(c.entries[i].value, n.entries[i].value, marked)
	}
	for i := range n.items {
		hide(c.items[i], n.items[i], marked)
	}
}

func conceal(n *node, f *field, secret bool) {
	secret = secret || f != nil && f.isSecret
	if n.kind == scalarNode && (n.written != "" || secret) {
		n.tag = "!!str"
		if n.text = n.written; n.text == "" {
			n.text = redacted
		}
	}
	for _, e := range n.entries {
		conceal(e.value, f.child(e.key), secret)
	}
	for _, it := range n.items {
		conceal(it, f.child("0"), secret)
	}
}

// minSecret is the shortest value that is kept out of logs: a shorter one would garble every line.
const minSecret = 4

// secrets lists the values that must not reach a log: secret fields, what came from a file, and what was injected into
// a plugin's config. A name injected into streamd's own keys (a pod's name, a topic) is no secret.
func secrets(root *node, spec *field) []string {
	var found []string
	var walk func(n *node, f *field, secret bool)
	walk = func(n *node, f *field, secret bool) {
		secret = secret || f != nil && (f.isSecret || f.kind == rawField)
		injected := strings.Contains(n.written, "${file:") || n.written != "" && secret
		if n.kind == scalarNode && len(n.text) >= minSecret && (injected || f != nil && f.isSecret) {
			found = append(found, n.text)
		}
		for _, e := range n.entries {
			c := f.child(e.key)
			if c == nil && f != nil && f.kind == textMapField && f.isSecret {
				c = &field{kind: textField, isSecret: true}
			}
			walk(e.value, c, secret)
		}
		for _, it := range n.items {
			walk(it, f.child("0"), secret)
		}
	}
	walk(root, spec, false)
	slices.SortFunc(found, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(found)
}
