package config

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxNodes bounds what aliases may expand to in one file, against "billion laughs".
const maxNodes = 100_000

// parser turns one file into nodes.
type parser struct {
	file  string
	ps    *problems
	nodes int
	open  map[*yaml.Node]bool // aliases being expanded, against cycles
}

// parse reads one YAML document; nil means that it is broken and has been reported. An empty file is an empty mapping.
func parse(file string, text []byte, ps *problems) *node {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return newMapping(Position{Source: file, Line: 1, Column: 1})
	case err != nil:
		reportSyntax(file, text, err, ps)
		return nil
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		ps.add(Position{file, second.Line, max(second.Column, 1)}, "two files, each given with -c", "a second YAML document in one file")
		return nil
	case !errors.Is(err, io.EOF):
		reportSyntax(file, text, err, ps)
		return nil
	}
	before := len(ps.list)
	p := &parser{file: file, ps: ps, open: map[*yaml.Node]bool{}}
	root := p.convert(doc.Content[0])
	if root.isNull() {
		return newMapping(root.pos)
	}
	if root.kind != mappingNode {
		ps.add(root.pos, "keys such as brokers: and streams:", "the file holds %s, not a mapping", root.describe())
		return nil
	}
	if len(ps.list) > before && p.nodes > maxNodes {
		return nil
	}
	return root
}

func (p *parser) pos(y *yaml.Node) Position { return Position{p.file, y.Line, y.Column} }

func (p *parser) convert(y *yaml.Node) *node {
	p.nodes++
	n := &node{pos: p.pos(y)}
	if p.nodes > maxNodes {
		if p.nodes == maxNodes+1 {
			p.ps.add(n.pos, "fewer nested aliases", "aliases expand to more than %d values", maxNodes)
		}
		n.kind, n.tag = scalarNode, "!!null"
		return n
	}
	switch y.Kind {
	case yaml.MappingNode:
		n.kind = mappingNode
		p.mapping(n, y)
	case yaml.SequenceNode:
		n.kind = listNode
		for _, c := range y.Content {
			n.items = append(n.items, p.convert(c))
		}
	case yaml.AliasNode:
		return p.alias(y)
	default:
		n.kind, n.tag, n.text = scalarNode, y.ShortTag(), y.Value
		n.plain = y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
		if y.Style&yaml.TaggedStyle != 0 && !strings.HasPrefix(n.tag, "!!") || n.tag == "!!binary" {
			p.ps.add(n.pos, "the value without a tag", "the YAML tag %s is not supported", n.tag)
		}
	}
	return n
}

func (p *parser) alias(y *yaml.Node) *node {
	if p.open[y.Alias] {
		p.ps.add(p.pos(y), "", "alias *%s contains itself", y.Value)
		return &node{kind: scalarNode, tag: "!!null", pos: p.pos(y)}
	}
	p.open[y.Alias] = true
	defer delete(p.open, y.Alias)
	return p.convert(y.Alias)
}

func (p *parser) mapping(n *node, y *yaml.Node) {
	var merged []*node
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		if k.ShortTag() == "!!merge" {
			merged = append(merged, p.convert(v))
			continue
		}
		if k.Kind != yaml.ScalarNode {
			p.ps.add(p.pos(k), "a plain word as key", "a key must be text")
			continue
		}
		if n.get(k.Value) != nil {
			p.ps.add(p.pos(k), "one of the two", "key %q is written twice, first at %s", k.Value, n.keyPos(k.Value))
			continue
		}
		n.entries = append(n.entries, entry{k.Value, p.pos(k), p.convert(v)})
	}
	for _, m := range merged {
		p.mergeKey(n, m)
	}
}

// mergeKey does what "<<:" asks: keys written beside it win.
func (p *parser) mergeKey(n, from *node) {
	switch from.kind {
	case listNode:
		for _, it := range from.items {
			p.mergeKey(n, it)
		}
	case mappingNode:
		for _, e := range from.entries {
			if n.get(e.key) == nil {
				n.entries = append(n.entries, e)
			}
		}
	default:
		p.ps.add(from.pos, "<<: *anchor", "<<: needs a mapping, not %s", from.describe())
	}
}

// describe names what a node is, for "holds X, not Y".
func (n *node) describe() string {
	switch n.kind {
	case mappingNode:
		return "a mapping"
	case listNode:
		return "a list"
	case scalarNode:
	}
	switch n.tag {
	case "!!null":
		return "nothing"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	}
	return "text"
}

// syntaxLine finds the line in the messages of the YAML library, which exports it in no other way.
var syntaxLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?s:(.*))$`)

// flowFault are the messages of the YAML library about what stands in brackets.
var flowFault = regexp.MustCompile(`expected ',' or|expected node content|flow|mapping values are not allowed|could not find expected ':'|unexpected end of stream`)

func reportSyntax(file string, text []byte, err error, ps *problems) {
	pos, what := Position{file, 1, 1}, err.Error()
	if m := syntaxLine.FindStringSubmatch(what); m != nil {
		what = m[2]
		if line, convErr := strconv.Atoi(m[1]); convErr == nil {
			pos.Line = line
		}
	}
	try := ""
	lines := strings.Split(string(text), "\n")
	for i := max(pos.Line-2, 0); i < len(lines) && i <= pos.Line; i++ {
		lead := lines[i][:len(lines[i])-len(strings.TrimLeft(lines[i], " \t"))]
		if tab := strings.IndexByte(lead, '\t'); tab >= 0 {
			ps.add(Position{file, i + 1, tab + 1}, "spaces", "a tab is used for indentation, which YAML does not allow")
			return
		}
	}
	if flowFault.MatchString(what) {
		if b, open := openBracket(string(text)); open {
			ps.add(Position{file, b.line, b.column}, string(closing(b.sign))+" where it ends", "the %c that begins here is not closed", b.sign)
			return
		}
	}
	if strings.Contains(what, "mapping values are not allowed") {
		try = "quotes around a text that contains ': ', or the indentation of the line above"
	}
	if pos.Line <= len(lines) && pos.Line > 0 {
		l := lines[pos.Line-1]
		pos.Column = len(l) - len(strings.TrimLeft(l, " ")) + 1
	}
	ps.add(pos, try, "this is not YAML: %s", what)
}
