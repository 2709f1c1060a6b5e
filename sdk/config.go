package sdk

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// decoder walks a config and its Go type side by side and collects everything that is wrong.
type decoder struct{ found []Diagnostic }

func (d *decoder) fail(pointer, text, hint string) {
	d.found = append(d.found, Diagnostic{Severity: SeverityError, Pointer: pointer, Text: text, Hint: hint})
}

// decodeConfig fills v from JSON. Empty input and null are an empty object.
func decodeConfig(config []byte, v reflect.Value) []Diagnostic {
	value := any(map[string]any{})
	if len(strings.TrimSpace(string(config))) > 0 {
		parsed, err := parseJSON(config)
		if err != nil {
			return []Diagnostic{{Severity: SeverityError, Text: "config is not JSON: " + err.Error()}}
		}
		if parsed != nil {
			value = parsed
		}
	}
	d := decoder{}
	d.value("", value, v)
	if len(d.found) == 0 {
		d.found = validate(v)
	}
	slices.SortStableFunc(d.found, func(a, b Diagnostic) int { return cmp.Compare(a.Pointer, b.Pointer) })
	return d.found
}

// validate calls the author's Validate.
func validate(v reflect.Value) []Diagnostic {
	checker, ok := reflect.TypeAssert[interface{ Validate() error }](v.Addr())
	if !ok {
		return nil
	}
	if err := checker.Validate(); err != nil {
		return diagnosticsOf("", err)
	}
	return nil
}

type fieldError struct {
	pointer string
	err     error
}

func (e *fieldError) Error() string { return textOf(e.err) }
func (e *fieldError) Unwrap() error { return e.err }

// At says which part of the config an error of Validate or of a constructor is about: a JSON pointer such as "/limits/max".
// At of nil is nil.
func At(pointer string, err error) error {
	if err == nil {
		return nil
	}
	return &fieldError{pointer: pointer, err: err}
}

// diagnosticsOf takes joined errors apart. One that panics when it is looked at is a diagnostic like the others.
func diagnosticsOf(pointer string, err error) (found []Diagnostic) {
	defer func() {
		if p := recover(); p != nil {
			found = []Diagnostic{{Severity: SeverityError, Pointer: pointer, Text: unreadable(err, p)}}
		}
	}()
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []Diagnostic
		for _, e := range joined.Unwrap() {
			all = append(all, diagnosticsOf(pointer, e)...)
		}
		return all
	}
	if at, ok := errors.AsType[*fieldError](err); ok {
		pointer = at.pointer
	}
	return []Diagnostic{{Severity: SeverityError, Pointer: pointer, Text: textOf(err)}}
}

// textOf reads an author's error. That runs code of the author's, as an Error method on a nil pointer that was returned as an
// error, and must not end the process.
func textOf(err error) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = unreadable(err, p)
		}
	}()
	return err.Error()
}

// unreadable stands for an error that panicked with p when it was read.
func unreadable(err error, p any) string {
	text := fmt.Sprintf("an error of type %T panicked when it was read: %v", err, p)
	if v := reflect.ValueOf(err); v.Kind() == reflect.Pointer && v.IsNil() {
		text += "; it is a nil pointer, which as an error is not nil: where nothing is wrong, return nil itself"
	}
	return text
}

// value fills v from one JSON value.
func (d *decoder) value(pointer string, value any, v reflect.Value) {
	t := v.Type()
	switch {
	case isDuration(t):
		d.duration(pointer, value, v)
	case isJSON(t):
		d.own(pointer, value, v)
	case isText(t):
		d.text(pointer, value, v)
	case t.Kind() == reflect.Pointer:
		if value != nil {
			v.Set(reflect.New(t.Elem()))
			d.value(pointer, value, v.Elem())
		}
	default:
		d.kind(pointer, value, v)
	}
}

func (d *decoder) kind(pointer string, value any, v reflect.Value) {
	switch t := v.Type(); t.Kind() {
	case reflect.Struct:
		if object, ok := d.object(pointer, value); ok {
			d.fields(pointer, object, v)
		}
	case reflect.Map:
		if object, ok := d.object(pointer, value); ok {
			v.Set(reflect.MakeMapWithSize(t, len(object)))
			for _, key := range slices.Sorted(maps.Keys(object)) {
				element := reflect.New(t.Elem()).Elem()
				d.value(pointer+"/"+escape(key), object[key], element)
				v.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), element)
			}
		}
	case reflect.Slice:
		list, ok := value.([]any)
		if !ok {
			d.fail(pointer, "is "+nameOf(value)+", not a list", "")
			return
		}
		v.Set(reflect.MakeSlice(t, len(list), len(list)))
		for i, element := range list {
			d.value(pointer+"/"+strconv.Itoa(i), element, v.Index(i))
		}
	case reflect.String:
		if s, ok := value.(string); ok {
			v.SetString(s)
		} else {
			d.fail(pointer, "is "+nameOf(value)+", not a string", quoteHint(value))
		}
	case reflect.Bool:
		if b, ok := value.(bool); ok {
			v.SetBool(b)
		} else {
			d.fail(pointer, "is "+nameOf(value)+", not true or false", "")
		}
	case reflect.Interface:
		if value != nil {
			v.Set(reflect.ValueOf(value))
		}
	default:
		d.number(pointer, value, v)
	}
}

func (d *decoder) object(pointer string, value any) (map[string]any, bool) {
	object, ok := value.(map[string]any)
	if !ok {
		d.fail(pointer, "is "+nameOf(value)+", not a map of keys", "")
	}
	return object, ok
}

// fields fills a struct and finds unknown and missing keys.
func (d *decoder) fields(pointer string, object map[string]any, v reflect.Value) {
	fields, err := fieldsOf(v.Type())
	if err != nil {
		d.fail(pointer, err.Error(), "") // cannot be: Configured has looked at the type
		return
	}
	known := make([]string, 0, len(fields))
	for i := range fields {
		f := &fields[i]
		known = append(known, f.name)
		value, there := object[f.name]
		at := pointer + "/" + escape(f.name)
		switch {
		case there && value != nil:
			d.field(f, at, value, v.FieldByIndex(f.index))
		case f.hasFallback:
			d.field(f, at, f.fallback, v.FieldByIndex(f.index))
		case f.required:
			d.fail(at, fmt.Sprintf("the key %q is missing", f.name), example(f))
		case f.typ.Kind() == reflect.Struct && !isText(f.typ) && !isJSON(f.typ):
			d.value(at, map[string]any{}, v.FieldByIndex(f.index)) // defaults of its fields, and what it requires
		}
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(known, key) {
			d.fail(pointer+"/"+escape(key), fmt.Sprintf("unknown key %q", key), suggestion(key, known))
		}
	}
}

// example shows how a field that is missing is written, and what it is for.
func example(f *fieldSpec) string {
	if f.doc == "" {
		return f.name + ": …"
	}
	return f.name + ": …, " + f.doc
}

// field fills one field and checks its bounds.
func (d *decoder) field(f *fieldSpec, pointer string, value any, v reflect.Value) {
	before := len(d.found)
	d.value(pointer, value, v)
	if len(d.found) > before {
		return
	}
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if len(f.enum) > 0 && v.Kind() == reflect.String && !slices.Contains(f.enum, v.String()) {
		d.fail(pointer, fmt.Sprintf("%q is not allowed", v.String()), "one of "+strings.Join(f.enum, ", "))
	}
	size, what, ok := sizeOf(v)
	switch {
	case !ok:
	case f.bounded[0] && size < f.numMin:
		d.fail(pointer, fmt.Sprintf("%s is less than %s", what, f.min), "at least "+f.min)
	case f.bounded[1] && size > f.numMax:
		d.fail(pointer, fmt.Sprintf("%s is more than %s", what, f.max), "at most "+f.max)
	}
}

// sizeOf returns what min and max compare.
func sizeOf(v reflect.Value) (size float64, what string, ok bool) {
	switch {
	case isDuration(v.Type()):
		return float64(v.Int()), time.Duration(v.Int()).String(), true
	case v.CanInt():
		return float64(v.Int()), strconv.FormatInt(v.Int(), 10), true
	case v.CanUint():
		return float64(v.Uint()), strconv.FormatUint(v.Uint(), 10), true
	case v.CanFloat():
		return v.Float(), strconv.FormatFloat(v.Float(), 'g', -1, 64), true
	}
	switch v.Kind() {
	case reflect.String, reflect.Slice, reflect.Map:
		return float64(v.Len()), fmt.Sprintf("length %d", v.Len()), true
	default:
		return 0, "", false
	}
}

func (d *decoder) number(pointer string, value any, v reflect.Value) {
	n, ok := value.(json.Number)
	if !ok {
		d.fail(pointer, "is "+nameOf(value)+", not a number", "")
		return
	}
	switch {
	case v.CanInt():
		i, err := strconv.ParseInt(n.String(), 10, v.Type().Bits())
		if err != nil {
			d.fail(pointer, fmt.Sprintf("%s is no integer of %d bits", n, v.Type().Bits()), "")
			return
		}
		v.SetInt(i)
	case v.CanUint():
		u, err := strconv.ParseUint(n.String(), 10, v.Type().Bits())
		if err != nil {
			d.fail(pointer, fmt.Sprintf("%s is no positive integer of %d bits", n, v.Type().Bits()), "")
			return
		}
		v.SetUint(u)
	default:
		f, err := strconv.ParseFloat(n.String(), v.Type().Bits())
		if err != nil {
			d.fail(pointer, fmt.Sprintf("%s is out of range", n), "")
			return
		}
		v.SetFloat(f)
	}
}

func (d *decoder) duration(pointer string, value any, v reflect.Value) {
	s, ok := value.(string)
	if !ok {
		hint := `text with a unit, such as "60s"`
		if n, isNumber := value.(json.Number); isNumber {
			hint = fmt.Sprintf("%q for seconds", n.String()+"s")
		}
		d.fail(pointer, "is "+nameOf(value)+", not a duration", hint)
		return
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		d.fail(pointer, fmt.Sprintf("%q is no duration", s), `a number with a unit: "250ms", "60s", "1h30m"`)
		return
	}
	v.SetInt(int64(parsed))
}

func (d *decoder) text(pointer string, value any, v reflect.Value) {
	s, ok := value.(string)
	if !ok {
		d.fail(pointer, "is "+nameOf(value)+", not a string", quoteHint(value))
		return
	}
	if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)); err != nil {
		d.fail(pointer, textOf(err), "")
	}
}

// own leaves a value to the type's own UnmarshalJSON.
func (d *decoder) own(pointer string, value any, v reflect.Value) {
	raw, err := json.Marshal(value)
	if err == nil {
		err = v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(raw)
	}
	if err != nil {
		d.fail(pointer, textOf(err), "")
	}
}

func nameOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case json.Number:
		return "the number " + v.String()
	case string:
		return "a string"
	case []any:
		return "a list"
	default:
		return "a map of keys"
	}
}

func quoteHint(value any) string {
	switch v := value.(type) {
	case json.Number:
		return strconv.Quote(v.String())
	case bool:
		return strconv.Quote(strconv.FormatBool(v))
	default:
		return ""
	}
}

// escape writes a key as a part of a JSON pointer (RFC 6901).
func escape(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// suggestion names the known key that is nearest, or all of them.
func suggestion(key string, known []string) string {
	best, distance := "", 3
	for _, k := range known {
		if n := editDistance(strings.ToLower(key), strings.ToLower(k)); n < distance {
			best, distance = k, n
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("did you mean %q?", best)
	case len(known) == 0:
		return "this takes no keys"
	default:
		return "known keys: " + strings.Join(known, ", ")
	}
}

// editDistance counts the letters to change, add or remove between two words.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := diagonal
			if a[i-1] != b[j-1] {
				change++
			}
			diagonal = row[j]
			row[j] = min(change, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
