package config

// Entry is where an entry of a list, such as a stream, was written. The zero Entry was not.
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
