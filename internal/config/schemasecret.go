package config

import (
	"encoding/json"
	"slices"
)

// Secrets are the values that the component's schema marks with "secret" or "writeOnly", however they were written: what
// has to be kept out of logs. Values too short to be told from other text are left out.
func (r Raw) Secrets(schema []byte) []string {
	var found []string
	for _, n := range secretNodes(r.origin, schema, false) {
		if len(n.text) >= minSecret && n.tag != "!!bool" {
			found = append(found, n.text)
		}
	}
	return found
}

// Redact returns l with the secrets of a component's config hidden where it is shown, as the component's schema marks
// them. l itself is not changed.
func (l *Loaded) Redact(r Raw, schema []byte) *Loaded {
	c := *l
	c.marked = slices.Clone(l.marked)
	c.marked = append(c.marked, secretNodes(r.origin, schema, false)...)
	c.Secrets = append(slices.Clone(l.Secrets), r.Secrets(schema)...)
	return &c
}

// secretNodes are the scalars below n that a schema without references marks. Below what is marked everything is.
func secretNodes(n *node, schema json.RawMessage, secret bool) []*node {
	if n == nil {
		return nil
	}
	var s struct {
		Secret     bool                       `json:"secret"`
		WriteOnly  bool                       `json:"writeOnly"`
		Properties map[string]json.RawMessage `json:"properties"`
		Items      json.RawMessage            `json:"items"`
		Others     json.RawMessage            `json:"additionalProperties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		s.Secret = false // true, false or nothing in a schema's place: it marks nothing
	}
	secret = secret || s.Secret || s.WriteOnly
	if n.kind == scalarNode && secret && n.tag != "!!null" {
		return []*node{n}
	}
	var found []*node
	for _, e := range n.entries {
		below, listed := s.Properties[e.key]
		if !listed {
			below = s.Others
		}
		found = append(found, secretNodes(e.value, below, secret)...)
	}
	for _, it := range n.items {
		found = append(found, secretNodes(it, s.Items, secret)...)
	}
	return found
}
