package wire

import "slices"

// Field is one entry of a header's extFields.
type Field struct {
	Key, Value string
}

// Fields are a header's extFields in the order of the frame. Nil means that the member was absent, an empty slice that it
// was there and empty: servers tell the two apart (vectors/README.md 5.1). A key may occur twice (Java's binary header
// with ACL writes each field twice); the last one counts.
//
//nolint:recvcheck // Set and Delete change the length, the others only read.
type Fields []Field

// Lookup returns the value of the last field called key.
func (f Fields) Lookup(key string) (string, bool) {
	for _, e := range slices.Backward(f) {
		if e.Key == key {
			return e.Value, true
		}
	}
	return "", false
}

// Get returns the value of the last field called key, "" when there is none.
func (f Fields) Get(key string) string {
	v, _ := f.Lookup(key)
	return v
}

// Set replaces the value of the last field called key, or adds the field.
func (f *Fields) Set(key, value string) {
	for i := range slices.Backward(*f) {
		if (*f)[i].Key == key {
			(*f)[i].Value = value
			return
		}
	}
	*f = append(*f, Field{Key: key, Value: value})
}

// Delete removes every field called key.
func (f *Fields) Delete(key string) {
	*f = slices.DeleteFunc(*f, func(e Field) bool { return e.Key == key })
}

// Map returns the fields as a map; the last of a repeated key stays. Nil fields give a nil map.
func (f Fields) Map() map[string]string {
	if f == nil {
		return nil
	}
	m := make(map[string]string, len(f))
	for _, e := range f {
		m[e.Key] = e.Value
	}
	return m
}
