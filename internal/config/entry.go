package config

import (
	"fmt"
	"slices"
)

// Entry is where an entry of a list, such as a stream, or a whole config was written. The zero Entry was not.
type Entry struct{ node *node }

// Locate is where the value of a key of the entry was written, such as "order"; when it was left out, where the entry begins.
func (e Entry) Locate(key string) Position {
	if e.node == nil {
		return Position{}
	}
	if v := e.node.get(key); v != nil && !v.byDefault {
		return v.pos
	}
	return e.node.pos
}

// Place puts before an error where the value that it is about was written: path are the keys down to it, and numbers from 0 in
// lists. A value that nobody wrote has no place, and the error stays as it is; nil stays nil.
func (e Entry) Place(err error, path ...string) error {
	if at := e.Value(path...).String(); err != nil && at != "" {
		return fmt.Errorf("%s: %w", at, err)
	}
	return err
}

// Value is where the value at a path was written, as Place says; the zero Position when nobody wrote it.
func (e Entry) Value(path ...string) Position {
	if e.node == nil {
		return Position{}
	}
	n, whole := e.node.at(path)
	if !whole || n.byDefault {
		return Position{}
	}
	return n.pos
}

// Unplaced is a copy that does not know where it was written. What says the same is deeply equal then, but for handlers and
// streams, whose own configs are compared by their JSON.
func (c *Config) Unplaced() Config {
	out := *c
	out.Written = Entry{}
	out.Brokers, out.Plugins = slices.Clone(c.Brokers), slices.Clone(c.Plugins)
	for i := range out.Brokers {
		b := &out.Brokers[i]
		b.Written = Entry{}
		if b.Embedded != nil {
			e := *b.Embedded
			e.Written = Entry{}
			b.Embedded = &e
		}
	}
	for i := range out.Plugins {
		out.Plugins[i].Written = Entry{}
	}
	return out
}
