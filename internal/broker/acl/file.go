package acl

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// minKey is the shortest access or secret key that RocketMQ takes: it wants more than six characters.
const minKey = 7

// Read reads a file in the format of RocketMQ's plain_acl.yml. The error names every problem with file, line and column; it
// holds no secret.
func Read(path string) (*List, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the access control file: %w", err)
	}
	return Parse(path, text)
}

// Parse reads the text of such a file; name stands for it in errors.
func Parse(name string, text []byte) (*List, error) {
	var doc yaml.Node
	switch err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s:1:1: the file is empty: it would let nobody in; try accounts: [{accessKey: …, secretKey: …}]", name)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := &parser{name: name, list: &List{accounts: map[string]*account{}}}
	p.file(doc.Content[0])
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return p.list, nil
}

type parser struct {
	name string
	list *List
	errs []error
}

func (p *parser) fail(n *yaml.Node, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s:%d:%d: %s", p.name, n.Line, n.Column, fmt.Sprintf(format, args...)))
}

// keys calls visit for each key of a mapping.
func (p *parser) keys(n *yaml.Node, what string, visit func(key string, value *yaml.Node) bool) {
	if n.Kind != yaml.MappingNode {
		p.fail(n, "%s must be a mapping of keys to values", what)
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; !visit(key.Value, n.Content[i+1]) {
			p.fail(key, "unknown key %q", key.Value)
		}
	}
}

func (p *parser) items(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		p.fail(n, "%s must be a list", what)
		return nil
	}
	return n.Content
}

func (p *parser) file(n *yaml.Node) {
	p.keys(n, "the file", func(key string, value *yaml.Node) bool {
		switch key {
		case "globalWhiteRemoteAddresses":
			for _, it := range p.items(value, key) {
				p.list.white = append(p.list.white, p.addresses(it)...)
			}
		case "accounts":
			for _, it := range p.items(value, key) {
				p.account(it)
			}
		case "dataVersion": // RocketMQ's tools write it
		default:
			return false
		}
		return true
	})
}

func (p *parser) account(n *yaml.Node) {
	a := &account{topics: map[string]permission{}, groups: map[string]permission{}}
	p.keys(n, "an account", func(key string, value *yaml.Node) bool {
		switch key {
		case "accessKey":
			a.name = p.key(value, key)
		case "secretKey":
			a.secret = []byte(p.key(value, key))
		case "whiteRemoteAddress":
			a.white = p.addresses(value)
		case "admin":
			if err := value.Decode(&a.admin); err != nil {
				p.fail(value, "admin is true or false")
			}
		case "defaultTopicPerm":
			a.defaultTopic = p.permission(value, value.Value)
		case "defaultGroupPerm":
			a.defaultGroup = p.permission(value, value.Value)
		case "topicPerms":
			p.permissions(value, key, a.topics)
		case "groupPerms":
			p.permissions(value, key, a.groups)
		default:
			return false
		}
		return true
	})
	switch {
	case n.Kind != yaml.MappingNode:
	case a.name == "" || len(a.secret) == 0:
		p.fail(n, "an account needs accessKey and secretKey")
	case p.list.accounts[a.name] != nil:
		p.fail(n, "the access key %q is there twice", a.name)
	default:
		p.list.accounts[a.name] = a
	}
}

func (p *parser) key(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || len(n.Value) < minKey {
		p.fail(n, "%s must be a text of %d characters or more", what, minKey)
		return strings.Repeat("?", minKey) // told once
	}
	return n.Value
}

func (p *parser) addresses(n *yaml.Node) addresses {
	all, err := parseAddresses(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode {
		p.fail(n, "%v", cmp.Or(err, errAddress))
	}
	return all
}

func (p *parser) permissions(n *yaml.Node, what string, into map[string]permission) {
	for _, it := range p.items(n, what) {
		name, perm, ok := strings.Cut(it.Value, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			p.fail(it, "%q is no NAME=PUB, NAME=SUB, NAME=PUB|SUB or NAME=DENY", it.Value)
			continue
		}
		into[name] = p.permission(it, perm)
	}
}

// permission reads RocketMQ's words for what is allowed. It takes an unknown word for DENY; here it is an error.
func (p *parser) permission(n *yaml.Node, text string) permission {
	switch strings.ReplaceAll(strings.TrimSpace(text), " ", "") {
	case "PUB":
		return pub
	case "SUB":
		return sub
	case "PUB|SUB", "SUB|PUB":
		return pub | sub
	case "DENY":
		return deny
	}
	p.fail(n, "%q is no permission; try PUB, SUB, PUB|SUB or DENY", strings.TrimSpace(text))
	return deny
}
