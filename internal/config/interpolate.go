package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// interpolator resolves ${env:X}, ${env:X:-default}, ${file:PATH} and the escape $${ in scalars.
type interpolator struct{ ps *problems }

func (ip *interpolator) all(root *node) {
	root.visit(func(n *node) {
		if n.kind == scalarNode && strings.Contains(n.text, "${") {
			ip.scalar(n)
		}
	})
}

func (ip *interpolator) scalar(n *node) {
	var out strings.Builder
	injected := false
	for rest := n.text; ; {
		i := strings.Index(rest, "${")
		if i < 0 {
			out.WriteString(rest)
			break
		}
		if i > 0 && rest[i-1] == '$' {
			out.WriteString(rest[:i-1] + "${")
			rest = rest[i+2:]
			continue
		}
		out.WriteString(rest[:i])
		end := strings.IndexByte(rest[i:], '}')
		if end < 0 {
			ip.ps.add(n.pos, "}, or $${ for the two characters themselves", "%q has no closing brace", rest[i:])
			return
		}
		out.WriteString(ip.reference(n, rest[i+2:i+end]))
		injected = true
		rest = rest[i+end+1:]
	}
	if injected {
		n.written = n.text
	}
	n.text = out.String()
	if n.plain {
		n.tag = resolveTag(n.text)
	}
}

// reference returns the value of what stands between ${ and }.
func (ip *interpolator) reference(n *node, ref string) string {
	scheme, arg, _ := strings.Cut(ref, ":")
	switch {
	case scheme == "env" && arg != "":
		name, fallback, hasFallback := strings.Cut(arg, ":-")
		value, set := os.LookupEnv(name)
		if hasFallback && value == "" {
			return fallback
		}
		if !set {
			ip.ps.add(n.pos, "setting it, or ${env:"+name+":-default}", "environment variable %s is not set", name)
		}
		return value
	case scheme == "file" && arg != "":
		text, err := readSmall(arg)
		if err != nil {
			ip.ps.put(Problem{Where: n.pos, What: fmt.Sprintf("reading %s: %v", arg, cause(err)), Try: "a path that this user can read", Away: true})
			return "${" + ref + "}" // which stands for the value in all further checks
		}
		return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	}
	ip.ps.add(n.pos, "${env:NAME}, ${env:NAME:-default}, ${file:PATH}, or $${ for the two characters themselves", "${%s} is no known reference", ref)
	return ""
}

// maxInjected bounds a file that becomes one value; a device or a log named by mistake must not fill the memory.
const maxInjected = 1 << 20

func readSmall(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err //nolint:wrapcheck // the caller names the path
	}
	text, err := io.ReadAll(io.LimitReader(f, maxInjected+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	if len(text) > maxInjected {
		return "", errTooLarge
	}
	return string(text), nil
}

var errTooLarge = errors.New("larger than 1 MiB")

// resolveTag says which scalar a plain text is, by the rules of the YAML library. An injected text never becomes null
// by being empty: it is an empty text then.
func resolveTag(text string) string {
	if text == "" {
		return "!!str"
	}
	y := yaml.Node{Kind: yaml.ScalarNode, Value: text}
	return y.ShortTag()
}
