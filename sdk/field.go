package sdk

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// fieldSpec is one field of a config struct with what its tags say.
type fieldSpec struct {
	name         string
	index        []int
	typ          reflect.Type
	doc          string
	fallback     any // decoded JSON; nil = none
	hasFallback  bool
	min, max     string
	enum         []string
	secret       bool
	required     bool
	numMin       float64
	numMax       float64
	bounded      [2]bool
	durationKind bool
}

// The types that are read as one JSON value although Go sees a struct, or that need words of their own.
func isDuration(t reflect.Type) bool {
	return t == reflect.TypeFor[Duration]() || t == reflect.TypeFor[time.Duration]()
}

func isText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func isJSON(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) && t != reflect.TypeFor[time.Time]()
}

// fieldsOf lists the fields of a config struct. Embedded structs without a json tag give their fields to the outer one.
func fieldsOf(t reflect.Type) ([]fieldSpec, error) {
	var fields []fieldSpec
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || (f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct) || !f.IsExported() {
			continue
		}
		if len(f.Index) > 1 && !promoted(t, f.Index) {
			continue
		}
		if name == "" {
			name = f.Name
		}
		spec := fieldSpec{
			name: name, index: f.Index, typ: f.Type, doc: f.Tag.Get("doc"), min: f.Tag.Get("min"), max: f.Tag.Get("max"),
			secret: f.Tag.Get("secret") == "true", required: f.Tag.Get("required") == "true",
			durationKind: isDuration(f.Type),
		}
		if enum := f.Tag.Get("enum"); enum != "" {
			spec.enum = strings.Split(enum, ",")
		}
		if err := spec.readTags(f.Tag); err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
		fields = append(fields, spec)
	}
	return fields, nil
}

// promoted tells whether all structs on the way to a field are embedded without a json name.
func promoted(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" || f.Type.Kind() != reflect.Struct {
			return false
		}
		t = f.Type
	}
	return true
}

func (f *fieldSpec) readTags(tag reflect.StructTag) error {
	for i, text := range []string{f.min, f.max} {
		if text == "" {
			continue
		}
		bound, err := f.parseBound(text)
		if err != nil {
			return err
		}
		f.bounded[i] = true
		if i == 0 {
			f.numMin = bound
		} else {
			f.numMax = bound
		}
	}
	text, ok := tag.Lookup("default")
	if !ok {
		return nil
	}
	f.hasFallback = true
	if value, err := parseJSON([]byte(text)); err == nil && !f.wantsString() {
		f.fallback = value
	} else {
		f.fallback = text
	}
	// A default that the field itself refuses would surface only when a user leaves the key out.
	d := decoder{}
	d.field(f, "", f.fallback, reflect.New(f.typ).Elem())
	if len(d.found) > 0 {
		return fmt.Errorf("default %q: %s", text, d.found[0].Text)
	}
	return nil
}

func (f *fieldSpec) wantsString() bool {
	t := f.typ
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.String || isDuration(t) || isText(t)
}

func (f *fieldSpec) parseBound(text string) (float64, error) {
	if f.durationKind {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("bound %q is no duration", text)
		}
		return float64(d), nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("bound %q is no number", text)
	}
	return v, nil
}

// parseJSON reads one JSON value with its numbers as written.
func parseJSON(data []byte) (any, error) {
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("something follows the value")
	}
	return v, nil
}
