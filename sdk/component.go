package sdk

import (
	"context"
	"fmt"
	"reflect"
	"runtime/debug"
)

// Component offers a handler under a name. C is a struct, filled from the config before build is called; it is checked
// first, and everything that is wrong is reported at once, each at its JSON pointer.
//
// What C says in tags goes into the JSON Schema of the component and into the check:
//
//	json:"name"      the key; fields without it use the Go name; "-" leaves a field out
//	doc:"…"          what it is for, and its unit
//	default:"…"      used when the key is absent; JSON, or a plain string
//	required:"true"  the key must be there; a field is optional otherwise
//	min:"…" max:"…"  bounds: of a number, of a Duration, of the length of a string, list or map
//	enum:"a,b"       allowed strings
//	secret:"true"    the host never shows the value
//
// Fields may be bool, integers, floats, string, Duration, time.Time (RFC 3339), any type with UnmarshalText, structs, pointers,
// slices, maps with string keys, and any. A method Validate() error on C or *C is called last; use At to say which field
// is meant, and errors.Join to say several things.
//
// Component panics when C cannot be a config, as regexp.MustCompile does: it is called with constants in main.
func Component[C any, H Handler](name string, build func(context.Context, C, Env) (H, error)) Spec {
	return handlerSpec(name, ModeSingle, build)
}

// BatchComponent is Component for a BatchHandler.
func BatchComponent[C any, H BatchHandler](name string, build func(context.Context, C, Env) (H, error)) Spec {
	return handlerSpec(name, ModeBatch, build)
}

// AsyncComponent is Component for an AsyncHandler.
func AsyncComponent[C any, H AsyncHandler](name string, build func(context.Context, C, Env) (H, error)) Spec {
	return handlerSpec(name, ModeAsync, build)
}

func handlerSpec[C, H any](name string, mode Mode, build func(context.Context, C, Env) (H, error)) Spec {
	spec := Configured(name, build)
	spec.Kind, spec.Mode = KindHandler, mode
	return spec
}

// Configured makes a Spec without a kind. It is for packages that offer other kinds of components, such as sdk/serve.
func Configured[C, T any](name string, build func(context.Context, C, Env) (T, error)) Spec {
	schema, err := schemaOf(reflect.TypeFor[C]())
	if err != nil {
		panic(fmt.Sprintf("component %q: %v", name, err))
	}
	return Spec{
		Name: name, Schema: schema,
		New: func(ctx context.Context, config []byte, env Env) (instance any, found []Diagnostic) {
			defer recovered(&instance, &found)
			var c C
			if diagnostics := decodeConfig(config, reflect.ValueOf(&c).Elem()); len(diagnostics) > 0 {
				return nil, diagnostics
			}
			built, err := build(ctx, c, env)
			if err != nil {
				return nil, diagnosticsOf("", err)
			}
			return built, nil
		},
	}
}

// recovered turns a panic of the author's constructor, or of what his config has of methods, into a diagnostic: it must not
// end the other instances.
func recovered(instance *any, found *[]Diagnostic) {
	if p := recover(); p != nil {
		*instance, *found = nil, []Diagnostic{{Severity: SeverityError, Text: fmt.Sprintf("the component panicked while it was built: %v\n%s", p, debug.Stack())}}
	}
}
