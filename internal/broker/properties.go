package broker

import (
	"bytes"
	"slices"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// properties is a message's properties while the broker works on them: Java's map, with an order.
type properties []property

type property struct{ name, value string }

// parseProperties reads a text form. As in Java's map the last of a repeated name stays.
func parseProperties(text []byte) properties {
	p := make(properties, 0, bytes.Count(text, []byte{2})+5)
	for name, value := range wire.Properties(text) {
		p.set(string(name), string(value))
	}
	return p
}

func (p *properties) get(name string) string {
	for _, q := range *p {
		if q.name == name {
			return q.value
		}
	}
	return ""
}

func (p *properties) set(name, value string) {
	for i := range *p {
		if (*p)[i].name == name {
			(*p)[i].value = value
			return
		}
	}
	*p = append(*p, property{name, value})
}

func (p *properties) remove(name string) {
	*p = slices.DeleteFunc(*p, func(q property) bool { return q.name == name })
}

// text is the stored form, with the closing separator that 5.3.3 writes.
func (p *properties) text() []byte {
	size := 0
	for _, q := range *p {
		size += len(q.name) + len(q.value) + 2
	}
	out := make([]byte, 0, size)
	for _, q := range *p {
		out = append(out, q.name...)
		out = append(out, 1)
		out = append(out, q.value...)
		out = append(out, 2)
	}
	return out
}
