package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// checkSchema holds the tree against the JSON Schema of Config and reports every breach at its place.
func checkSchema(root *node, f *field, ps *problems) error {
	doc, err := json.Marshal(f.document())
	if err != nil {
		return fmt.Errorf("rendering the schema: %w", err)
	}
	leaves, err := breaches(doc, root.jsonValue(ps))
	if err != nil {
		return err
	}
	for _, l := range leaves {
		describeBreach(root, f, l, ps)
	}
	checkRanges(root, f, "", ps)
	return nil
}

// breaches validates a value and returns the leaves of the error tree. err is a schema that cannot be used.
func breaches(schema []byte, value any) ([]*jsonschema.ValidationError, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(schema)))
	if err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // a schema never makes us read a file or a URL
	if err := c.AddResource("config.json", doc); err != nil {
		return nil, fmt.Errorf("adding the schema: %w", err)
	}
	compiled, err := c.Compile("config.json")
	if err != nil {
		return nil, fmt.Errorf("compiling the schema: %w", err)
	}
	var bad *jsonschema.ValidationError
	if err := compiled.Validate(value); !errors.As(err, &bad) {
		return nil, err //nolint:wrapcheck // nil, or a value of a type JSON does not know
	}
	return leaves(bad, nil), nil
}

func leaves(e *jsonschema.ValidationError, into []*jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return append(into, e)
	}
	for _, c := range e.Causes {
		into = leaves(c, into)
	}
	return into
}

func describeBreach(root *node, f *field, e *jsonschema.ValidationError, ps *problems) {
	n, _ := root.at(e.InstanceLocation)
	at := f.at(e.InstanceLocation)
	name := dotted(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, key := range k.Properties {
			unknownKey(n, f, e.InstanceLocation, key, ps)
		}
	case *kind.Required:
		for _, key := range k.Missing {
			ps.add(n.pos, key+": …", "%s lacks the key %q", owner(e.InstanceLocation, n), key)
		}
	default:
		if at == nil {
			f.at(e.InstanceLocation[:max(0, len(e.InstanceLocation)-1)]).wrongPart(n, name, reason(e), ps)
			return
		}
		at.wrongValue(n, name, ps)
	}
}

// wrongPart reports a value that has no field of its own, from the field that it is a part of.
func (f *field) wrongPart(n *node, name, reason string, ps *problems) {
	switch {
	case f == nil:
		ps.add(n.pos, "", "%s is %s", name, reason)
	case f.kind == textMapField:
		(&field{kind: textField, isSecret: f.isSecret}).wrongValue(n, name, ps)
	case f.kind == serversField:
		if n.kind != scalarNode || n.isNull() { // any other is told as an address
			ps.add(n.pos, `"HOST:9876"`, "%s has %s among the addresses", name, n.describe())
		}
	case f.kind == startFromField:
		if n.kind != scalarNode || n.isNull() || n.text == "" { // any other is told as a time
			ps.add(n.pos, "2026-11-01T00:00:00Z", "%s is no time", name)
		}
	default:
		ps.add(n.pos, "", "%s is %s", name, reason)
	}
}

// owner names the entry that a path leads to: the stream "orders".
func owner(path []string, n *node) string {
	if len(path) == 0 {
		return "the config"
	}
	if len(path) >= 2 {
		if _, err := strconv.Atoi(path[len(path)-1]); err == nil {
			if name, ok := n.str("name"); ok {
				return fmt.Sprintf("%s %q", strings.TrimSuffix(path[len(path)-2], "s"), name.shown())
			}
			return "an entry of " + path[len(path)-2]
		}
	}
	return dotted(path)
}

// dotted names a key within its entry: streams/0/batch/max is batch.max.
func dotted(path []string) string {
	var keys []string
	for i, p := range path {
		if _, err := strconv.Atoi(p); err == nil && i+1 < len(path) {
			keys = nil
		} else if err != nil {
			keys = append(keys, p)
		}
	}
	if len(keys) == 0 {
		return strings.Join(path, ".")
	}
	return strings.Join(keys, ".")
}

// laterKeys are keys of design.md 6 that come with their feature.
var laterKeys = map[string]string{ //nolint:gochecknoglobals // a constant table
	"chains": "chains of handlers",
}

// unknownKey reports a key that the mapping at a path of root does not have: a misspelled one, or one of another level.
func unknownKey(n *node, root *field, path []string, key string, ps *problems) {
	pos, f := n.keyPos(key), root.at(path)
	near, sure := f.like(key)
	what, under := "", (*place)(nil)
	if !sure {
		what, under = root.misplaced(key, levelOf(path))
	}
	switch {
	case under != nil:
		try := under.within(levelOf(path))
		if longer := f.longer(key); longer != "" {
			try = longer + " here, or " + try
		}
		ps.add(pos, try, "unknown key %q: %s", key, what)
		return
	case what != "":
		ps.add(pos, "moving it there", "unknown key %q: %s", key, what)
		return
	case near != "":
		ps.add(pos, near, "unknown key %q", key)
		return
	}
	if what, ok := laterKeys[key]; ok {
		ps.add(pos, "removing the key", "unknown key %q: %s is not in this version", key, what)
		return
	}
	try := ""
	switch {
	case f == nil:
	case len(f.fields) > 0:
		try = oneOf(f.keys())
	case f.kind == startFromField:
		try = "timestamp: 2026-11-01T00:00:00Z"
	}
	ps.add(pos, try, "unknown key %q", key)
}

// wrongValue says what a field takes, from the field rather than from the keyword that failed.
func (f *field) wrongValue(n *node, name string, ps *problems) {
	shown := n.shown()
	if strings.TrimSpace(shown) == "" { // an element between two commas of a flag, for instance
		shown = strconv.Quote(shown)
	}
	switch {
	case n.isNull() && n.written == "":
		ps.add(n.pos, "a value, or removing the key", "%s has no value", name)
	case slices.Contains(f.later, n.text):
		ps.add(n.pos, oneOf(f.enum), "%s: %s is not in this version", name, shown)
	case len(f.enum) > 0:
		try := nearest(n.text, f.enum)
		if try == "" {
			try = oneOf(f.enum)
		}
		ps.add(n.pos, try, "%s cannot be %s", name, shown)
	case f.kind == serversField && n.kind == scalarNode && !n.isNull(): // told as an address
	case f.kind == durationField:
		ps.add(n.pos, f.durationHint(n), "%s: %s is no duration", name, shown)
	case f.kind == sizeField:
		ps.add(n.pos, f.sizeHint(n), "%s: %s is no size", name, shown)
	case f.kind == startFromField:
		ps.add(n.pos, "first, last or {timestamp: 2026-11-01T00:00:00Z}", "%s cannot be %s", name, shown)
	case f.kind == textField && n.kind == scalarNode && n.tag != "!!str" && n.tag != "!!null" && f.isSecret:
		ps.add(n.pos, "quotes around it", "%s must be text and is %s", name, n.describe())
	case f.kind == textField && n.kind == scalarNode && n.tag != "!!str" && n.tag != "!!null":
		ps.add(n.pos, f.asText(n), "%s must be text and %s is %s", name, shown, n.describe())
	case f.kind == textField && n.kind == scalarNode && n.text == "":
		ps.add(n.pos, "a value", "%s is empty", name)
	case f.pattern != "":
		hint, _, _ := strings.Cut(f.doc, ".")
		ps.add(n.pos, hint, "%s: %s has the wrong form", name, shown)
	case f.kind == listField && n.kind == listNode && len(n.items) == 0:
		ps.add(n.pos, "at least one entry", "%s is empty", name)
	case f.kind == intField && n.tag == "!!float" && !isWhole(n.text):
		ps.add(n.pos, "a whole number, "+f.rangeHint(), "%s: %s is no whole number", name, shown)
	case (f.kind == intField || f.kind == numberField) && (n.tag == "!!int" || n.tag == "!!float"):
		ps.add(n.pos, f.rangeHint(), "%s: %s is out of range", name, shown)
	default:
		ps.add(n.pos, f.wants(n), "%s is %s, not %s", name, n.describe(), f.noun())
	}
}

func (f *field) noun() string {
	switch f.kind {
	case objectField, rawField, textMapField:
		return "a mapping"
	case listField:
		return "a list"
	case intField:
		return "a whole number"
	case numberField:
		return "a number"
	case boolField:
		return "true or false"
	case serversField:
		return "a list of addresses"
	default:
		return "text"
	}
}

func (f *field) wants(n *node) string {
	switch f.kind {
	case listField, serversField:
		if n.kind == scalarNode {
			return "[" + n.shown() + "]"
		}
		if f.items != nil && len(f.items.fields) > 0 {
			return "'- " + f.items.fields[0].key + ": …' below it"
		}
		return "[…]"
	case objectField:
		return f.fields[0].key + ": … below it"
	case intField, numberField:
		if f.hasFallback {
			return f.fallback
		}
		return "1"
	case boolField:
		return "true or false"
	case rawField, textMapField:
		return "KEY: VALUE below it"
	default:
		return "a value in quotes"
	}
}

func (f *field) rangeHint() string {
	switch {
	case f.min != "" && f.max != "":
		return f.min + " to " + f.max
	case f.min != "":
		return f.min + " or more"
	}
	return f.max + " or less"
}

// asText is how a value is written that has to be text. A number where an address is wanted is a port.
func (f *field) asText(n *node) string {
	if f.key == "listen" && n.tag == "!!int" {
		return strconv.Quote("127.0.0.1:" + n.text)
	}
	return strconv.Quote(n.text)
}

func isWhole(text string) bool {
	v, err := strconv.ParseFloat(text, 64)
	return err == nil && v == math.Trunc(v)
}

// durationHint is what to write for a value without a unit, if that is a duration that may stand here.
func (f *field) durationHint(n *node) string {
	if n.written == "" {
		if _, err := strconv.ParseFloat(n.text, 64); err == nil && !strings.HasPrefix(n.text, "-") {
			return f.allowed(n.text+"s", "a number with a unit")
		}
	}
	return "a number with ns, us, ms, s, m or h, such as 60s"
}

// allowed is a hint if it stands within the field's bounds, else the bounds.
func (f *field) allowed(hint, what string) string {
	if value, ok := f.amount(hint); ok && !f.within(value) {
		return what + ", " + f.rangeHint()
	}
	return hint
}

func (f *field) sizeHint(n *node) string {
	if n.written == "" {
		if v, err := strconv.ParseInt(n.text, 10, 64); err == nil && v >= 0 {
			return f.allowed(Size(v).String(), "a whole number with a unit")
		}
		for _, wrong := range []struct{ is, should string }{{"KB", "KiB"}, {"MB", "MiB"}, {"GB", "GiB"}, {"K", "KiB"}, {"M", "MiB"}, {"G", "GiB"}} {
			if digits, ok := strings.CutSuffix(strings.ToUpper(n.text), wrong.is); ok {
				return f.allowed(strings.TrimSpace(digits)+wrong.should, "a whole number with a unit")
			}
		}
	}
	return "a whole number with B, KiB, MiB or GiB, such as 256KiB"
}

// reason is the schema library's own sentence for a breach.
func reason(e *jsonschema.ValidationError) string {
	out := e.BasicOutput()
	if out.Error != nil {
		return out.Error.String()
	}
	for _, u := range out.Errors {
		if u.Error != nil {
			return u.Error.String()
		}
	}
	return "not valid"
}

// checkRanges holds durations and sizes against the bounds of their tags, which JSON Schema cannot express for texts.
func checkRanges(n *node, f *field, name string, ps *problems) {
	switch {
	case n.kind == listNode && f.kind == listField:
		for _, it := range n.items {
			checkRanges(it, f.items, "", ps)
		}
	case n.kind == mappingNode && f.kind == objectField:
		for _, c := range f.fields {
			if v := n.get(c.key); v != nil {
				checkRanges(v, c, strings.TrimPrefix(name+"."+c.key, "."), ps)
			}
		}
	case n.kind == scalarNode && (f.kind == durationField || f.kind == sizeField):
		if value, ok := f.amount(n.text); ok && !f.within(value) {
			ps.add(n.pos, f.rangeHint(), "%s: %s is out of range", name, n.shown())
		}
	}
}

func (f *field) within(value int64) bool {
	if least, ok := f.amount(f.min); ok && value < least {
		return false
	}
	most, ok := f.amount(f.max)
	return !ok || value <= most
}

// amount is the number a duration or size stands for.
func (f *field) amount(text string) (int64, bool) {
	if f.kind == durationField {
		d, err := time.ParseDuration(text)
		return int64(d), err == nil && d >= 0
	}
	s, err := ParseSize(text)
	return int64(s), err == nil
}
