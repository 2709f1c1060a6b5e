package process

import (
	"maps"
	"os"
	"slices"
	"strings"
)

// inherited lists what a plugin sees of the host's environment: enough to find programs, its home, a place for
// temporary files, the locale and the time zone. Nothing else, so that a secret of the host stays in the host.
func inherited() []string {
	return []string{"PATH", "HOME", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "LC_TIME", "LC_COLLATE", "LC_NUMERIC"}
}

// Environment builds a plugin's environment: the inherited names, then what the config gives, then what the host itself
// sets; later ones win. The result is sorted and names each variable once.
func Environment(config map[string]string, host map[string]string) []string {
	merged := map[string]string{}
	for _, name := range inherited() {
		if v, ok := os.LookupEnv(name); ok {
			merged[name] = v
		}
	}
	maps.Copy(merged, config)
	maps.Copy(merged, host)
	out := make([]string, 0, len(merged))
	for name, v := range merged {
		out = append(out, name+"="+v)
	}
	slices.SortFunc(out, strings.Compare)
	return out
}

// MergeEnv adds variables, each "name=value", to an environment and replaces those of the same name: most programs read
// the first of two.
func MergeEnv(env, add []string) []string {
	names := map[string]bool{}
	for _, kv := range add {
		name, _, _ := strings.Cut(kv, "=")
		names[name] = true
	}
	kept := slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return names[name]
	})
	return append(kept, add...)
}
