package config

import (
	"os"
	"strings"

	"github.com/spf13/viper"
)

// envPrefix starts the name of every variable that sets a key.
const envPrefix = "STREAMD_"

// keyDelimiter joins the steps of a key inside viper, where "." would split names.
const keyDelimiter = "::"

// EnvName is the variable that sets a key: admin.listen is STREAMD_ADMIN_LISTEN.
func EnvName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// Flag is a command-line flag that was given. It wins over everything.
type Flag struct {
	Key   string // of the config, "log.level"
	Name  string // as typed, "--log-level"
	Value string
}

// setting is a value from a flag or from --set, as viper wants to see a flag.
type setting struct {
	key   string
	value *node
}

func (s setting) HasChanged() bool    { return true }
func (s setting) Name() string        { return s.key }
func (s setting) ValueString() string { return s.value.text }
func (s setting) ValueType() string   { return "string" }

// layerScalars lets viper choose for each scalar outside lists between flag or --set, environment, files and default, and
// writes what won into the tree with the place it came from.
func layerScalars(root *node, f *field, given map[string]*node, ps *problems) error {
	v := viper.NewWithOptions(viper.KeyDelimiter(keyDelimiter))
	files := map[string]any{}
	var firstErr error
	f.scalars(func(path []string, c *field) {
		key := strings.Join(path, keyDelimiter)
		if c.hasFallback {
			v.SetDefault(key, c.fallbackNode())
		}
		if n, whole := root.at(path); whole && n.kind == scalarNode && !n.isNull() {
			nest(files, path, n)
		}
		if err := v.BindEnv(key, EnvName(strings.Join(path, "."))); err != nil && firstErr == nil {
			firstErr = err
		}
		if n := given[strings.Join(path, ".")]; n != nil {
			if err := v.BindFlagValue(key, setting{key, n}); err != nil && firstErr == nil {
				firstErr = err
			}
		}
	})
	if firstErr != nil {
		return firstErr
	}
	if err := v.MergeConfigMap(files); err != nil {
		return err //nolint:wrapcheck // cannot happen with plain maps
	}
	f.scalars(func(path []string, c *field) {
		text, fromOutside := v.Get(strings.Join(path, keyDelimiter)).(string)
		if !fromOutside {
			return // a node: what the tree holds already, or a default that fill adds
		}
		key := strings.Join(path, ".")
		n := given[key]
		if n == nil {
			n = outsideScalar(c, text, Position{Source: "environment " + EnvName(key)})
		}
		put(root, path, n, ps)
	})
	return nil
}

// outsideScalar is a value from outside a file: it takes the type its field wants.
func outsideScalar(f *field, text string, pos Position) *node {
	n := newText(text, pos)
	switch f.kind {
	case intField, numberField, boolField:
		n.tag = resolveTag(text)
	default: // a text
	}
	return n
}

func nest(m map[string]any, path []string, n *node) {
	for _, step := range path[:len(path)-1] {
		next, ok := m[step].(map[string]any)
		if !ok {
			next = map[string]any{}
			m[step] = next
		}
		m = next
	}
	m[path[len(path)-1]] = n
}

// put writes a value into the tree, making the mappings on the way.
func put(root *node, path []string, value *node, ps *problems) {
	n := root
	for _, step := range path[:len(path)-1] {
		next := n.get(step)
		if next == nil || next.isNull() {
			next = newMapping(value.pos)
			n.set(step, value.pos, next)
		}
		if next.kind != mappingNode {
			ps.add(value.pos, "", "%s is no mapping at %s", step, next.pos)
			return
		}
		n = next
	}
	n.set(path[len(path)-1], value.pos, value)
}

// checkEnvironment reports STREAMD_ variables that cannot mean what their author hoped: names of sections, and misspelled
// keys. Other variables are left alone, because Kubernetes sets STREAMD_SERVICE_HOST and the like for a service called
// streamd.
func checkEnvironment(f *field, ps *problems) {
	known, sections := map[string]bool{}, map[string]string{}
	var names []string
	f.scalars(func(path []string, _ *field) {
		name := EnvName(strings.Join(path, "."))
		known[name] = true
		names = append(names, name)
		for i := 1; i < len(path); i++ {
			sections[EnvName(strings.Join(path[:i], "."))] = strings.Join(path[:i], ".")
		}
	})
	for _, c := range f.fields {
		if !c.isScalar() {
			sections[EnvName(c.key)] = c.key
		}
	}
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, envPrefix) || value == "" || known[name] {
			continue
		}
		where := Position{Source: "environment " + name}
		if key, ok := sections[name]; ok {
			ps.add(where, "a variable for one scalar, such as "+names[len(names)-1], "%s is a section, which no variable can set", key)
		} else if near := nearest(name, names); near != "" && distance(name, near) <= 2 {
			ps.add(where, near, "no key has this variable")
		}
	}
}
