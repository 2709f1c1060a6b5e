package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// Opt is a header field that may be absent. Absent and empty are different on the wire.
type Opt[T any] struct {
	Value   T
	Present bool
}

// Some returns a present value.
func Some[T any](v T) Opt[T] { return Opt[T]{Value: v, Present: true} }

// Or returns the value, or fallback when it is absent.
func (o Opt[T]) Or(fallback T) T {
	if o.Present {
		return o.Value
	}
	return fallback
}

// Header is a typed set of header fields. The types of this package whose names end in Request or Response implement it.
type Header interface{ bind(b *binder) }

// Request is the header of a request.
type Request interface {
	Header
	RequestCode() RequestCode
}

// EncodeFields returns the fields of h; nil when h has none at all.
func EncodeFields(h Header) Fields {
	const usual = 16 // fields of the longest header
	if f := AppendFields(make(Fields, 0, usual), h); len(f) > 0 {
		return f
	}
	return nil
}

// AppendFields appends the fields of h to dst.
func AppendFields(dst Fields, h Header) Fields {
	b := binder{fields: dst}
	h.bind(&b)
	return b.fields
}

// DecodeFields reads f into h. Fields that h does not know go to its Other, when it has one. The error names the first
// field that is missing or of the wrong type and wraps ErrField; the other fields are set nevertheless.
func DecodeFields(f Fields, h Header) error {
	if len(f) > maxFields {
		return fmt.Errorf("%w: more than %d fields", ErrField, maxFields)
	}
	b := binder{decoding: true, fields: f}
	h.bind(&b)
	return b.err
}

// binder moves a header's fields one way or the other, so that each header is described once, by its bind method.
type binder struct {
	decoding bool
	fields   Fields // source, or destination
	used     [maxFields / 64]uint64
	err      error
}

// find returns the last value of key and marks all of them as known.
func (b *binder) find(key string) (value string, ok bool) {
	for i := range b.fields {
		if b.fields[i].Key == key {
			b.used[i/64] |= 1 << (i % 64)
			value, ok = b.fields[i].Value, true
		}
	}
	return value, ok
}

func (b *binder) put(key, value string) {
	b.fields = append(b.fields, Field{Key: key, Value: value})
}

func (b *binder) fail(key, what string) {
	if b.err == nil {
		b.err = fmt.Errorf("%w: %s %s", ErrField, key, what)
	}
}

// kind says whether a field must be there.
type kind uint8

const (
	required kind = iota
	lenient       // always written; absent reads as zero (Java's primitives)
)

func scalar[T any](b *binder, key string, v *T, k kind, parse func(string) (T, error), format func(T) string) {
	if !b.decoding {
		b.put(key, format(*v))
		return
	}
	text, ok := b.find(key)
	switch {
	case ok:
		parsed, err := parse(text)
		if err != nil {
			b.fail(key, "has the bad value "+strconv.Quote(shorten(text)))
			return
		}
		*v = parsed
	case k == required:
		b.fail(key, "is missing")
	}
}

func optional[T any](b *binder, key string, v *Opt[T], parse func(string) (T, error), format func(T) string) {
	if !b.decoding {
		if v.Present {
			b.put(key, format(v.Value))
		}
		return
	}
	text, ok := b.find(key)
	if !ok {
		return
	}
	parsed, err := parse(text)
	if err != nil {
		b.fail(key, "has the bad value "+strconv.Quote(shorten(text)))
		return
	}
	*v = Some(parsed)
}

// shorten keeps hostile values out of error texts.
func shorten(s string) string {
	const limit = 64
	if len(s) <= limit {
		return s
	}
	return s[:limit] + "…"
}

func parseText(s string) (string, error) { return s, nil }
func formatText(s string) string         { return s }

func parseInt32(s string) (int32, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	return int32(n), err
}
func formatInt32(n int32) string { return strconv.FormatInt(int64(n), 10) }

func parseInt64(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }
func formatInt64(n int64) string         { return strconv.FormatInt(n, 10) }

// parseBool is Java's: everything but "true" is false.
func parseBool(s string) (bool, error) { return strings.EqualFold(s, "true"), nil }

func (b *binder) text(key string, v *string) { scalar(b, key, v, required, parseText, formatText) }
func (b *binder) int32(key string, v *int32) { scalar(b, key, v, required, parseInt32, formatInt32) }

func (b *binder) int64(key string, v *int64) { scalar(b, key, v, required, parseInt64, formatInt64) }

func (b *binder) bool(key string, v *bool) {
	scalar(b, key, v, required, parseBool, strconv.FormatBool)
}

func (b *binder) lenientInt32(key string, v *int32) {
	scalar(b, key, v, lenient, parseInt32, formatInt32)
}

func (b *binder) lenientBool(key string, v *bool) {
	scalar(b, key, v, lenient, parseBool, strconv.FormatBool)
}
func (b *binder) optText(key string, v *Opt[string]) { optional(b, key, v, parseText, formatText) }
func (b *binder) optInt32(key string, v *Opt[int32]) { optional(b, key, v, parseInt32, formatInt32) }

func (b *binder) optInt64(key string, v *Opt[int64]) { optional(b, key, v, parseInt64, formatInt64) }

func (b *binder) optBool(key string, v *Opt[bool]) {
	optional(b, key, v, parseBool, strconv.FormatBool)
}

// rest moves the fields that nobody asked for.
func (b *binder) rest(other *Fields) {
	if !b.decoding {
		b.fields = append(b.fields, *other...)
		return
	}
	for i, f := range b.fields {
		if b.used[i/64]&(1<<(i%64)) == 0 {
			*other = append(*other, f)
		}
	}
}

// Common holds the fields that any request may carry (remoting-protocol.md 1.7).
type Common struct {
	BrokerName  Opt[string] // bname: 4.9.5
	Namespace   Opt[string] // ns: 5.2.0
	Namespaced  Opt[bool]   // nsd: 5.2.0
	Oneway      Opt[bool]   // oway: 5.0.0, informative
	Logical     Opt[bool]   // lo: 5.0.0, static topics
	RequestType Opt[string] // ReqT: "0" = stream
	// Other holds the fields beyond: those of ACL, of zones, of later releases.
	Other Fields
}

func (c *Common) bindCommon(b *binder) {
	b.optText("bname", &c.BrokerName)
	c.bindTail(b)
}

// bindTail leaves out bname, which 310 and its kin send under another name.
func (c *Common) bindTail(b *binder) {
	b.optText("ns", &c.Namespace)
	b.optBool("nsd", &c.Namespaced)
	b.optBool("oway", &c.Oneway)
	b.optBool("lo", &c.Logical)
	b.optText("ReqT", &c.RequestType)
	b.rest(&c.Other)
}
