package brokersuite

import (
	"fmt"
	"maps"
	"slices"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// fields are the header fields of a request.
type fields map[string]any

func (f fields) list() wire.Fields {
	all := make(wire.Fields, 0, len(f))
	for _, k := range slices.Sorted(maps.Keys(f)) {
		all = append(all, wire.Field{Key: k, Value: fmt.Sprint(f[k])})
	}
	return all
}

// with is a copy of f in which other's fields replace or join its own; nil takes a field away.
func (f fields) with(other fields) fields {
	all := maps.Clone(f)
	for k, v := range other {
		if v == nil {
			delete(all, k)
			continue
		}
		all[k] = v
	}
	return all
}
