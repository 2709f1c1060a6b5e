package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Options says where a configuration comes from.
type Options struct {
	Paths    []string // files and directories (their *.yaml and *.yml in lexical order), merged in this order
	Overlays []string // files that change entries by name
	Set      []string // KEY=VALUE, with names of entries in brackets
	Flags    []Flag
	// Strategies are the names allocation.strategy may have; empty = not checked.
	Strategies []string
	// SQL reads an expression of subscribe[].sql as the embedded broker does, and says what is wrong with it; nil = not checked.
	SQL func(expression string) error
	// Dev, when set, replaces the brokers by embedded ones. No file need be given then, and no stream.
	Dev *Dev
}

// Loaded is a valid configuration with what is needed to show it.
type Loaded struct {
	Config *Config
	// Files are those that were read, in order.
	Files []string
	// Secrets are the injected and secret values, to be kept out of logs.
	Secrets []string
	// Replaced says, for people, which brokers Options.Dev replaced.
	Replaced []string
	// Warnings are what is wrong for all that is known here, and the brokers' to judge.
	Warnings []Problem

	root   *node
	spec   *field
	marked []*node // secret by a component's schema
}

// Load reads, merges, layers and checks a configuration. Errors are *InvalidError with every problem found, or
// *UnreadableError. It reads files and the environment, and changes nothing.
func Load(opts Options) (*Loaded, error) {
	if len(opts.Paths) == 0 && opts.Dev == nil {
		return nil, &InvalidError{[]Problem{{What: "no config file is given", Try: "-c streamd.yaml"}}}
	}
	files, err := expand(opts.Paths)
	if err != nil {
		return nil, err
	}
	order := append(slices.Clone(files), opts.Overlays...)
	var ps problems
	root, err := readAll(files, opts.Overlays, &ps)
	if err != nil {
		return nil, err
	}
	if root == nil {
		return nil, ps.err(order)
	}
	spec := describeConfig()
	if opts.Dev != nil {
		spec.child("streams").required = len(opts.Paths) > 0
	}
	replaced, err := build(root, spec, opts, &ps)
	if err != nil {
		return nil, err
	}
	if err := ps.err(order); err != nil {
		return nil, err
	}
	cfg, err := decode(root)
	if err != nil {
		return nil, err
	}
	for i := range cfg.Brokers {
		if e := cfg.Brokers[i].Embedded; e != nil {
			e.Dev = opts.Dev != nil
		}
	}
	return &Loaded{
		Config: cfg, Files: order, Secrets: secrets(root, spec), Replaced: replaced, Warnings: inOrder(ps.warnings, order), root: root, spec: spec,
	}, nil
}

// build turns merged nodes into a complete and checked tree. It returns what opts.Dev replaced.
func build(root *node, spec *field, opts Options, ps *problems) (replaced []string, err error) {
	ip := interpolator{ps: ps}
	ip.all(root)
	checkEnvironment(spec, ps)
	outside := applySet(root, spec, opts.Set, ps)
	for _, f := range opts.Flags {
		outside[f.Key] = outsideScalar(spec.at(strings.Split(f.Key, ".")), f.Value, Position{Source: f.Name})
	}
	if err := layerScalars(root, spec, outside, ps); err != nil {
		return nil, fmt.Errorf("layering the configuration: %w", err)
	}
	spec.settle(root)
	if err := checkSchema(root, spec, ps); err != nil {
		return nil, err
	}
	if opts.Dev != nil {
		replaced = replaceBrokers(root, opts.Dev)
	}
	complete(root, spec)
	checkMeaning(root, opts, ps)
	return replaced, nil
}

// expand lists the files that paths stand for.
func expand(paths []string) ([]string, error) {
	var files []string
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, &UnreadableError{p, cause(err), instead(p, err)}
		}
		if !info.IsDir() {
			files = append(files, p)
			continue
		}
		entries, err := os.ReadDir(p)
		if err != nil {
			return nil, &UnreadableError{p, cause(err), unread(err)}
		}
		found := len(files)
		for _, e := range entries {
			ext := filepath.Ext(e.Name())
			if !e.IsDir() && (ext == ".yaml" || ext == ".yml") && !strings.HasPrefix(e.Name(), ".") {
				files = append(files, filepath.Join(p, e.Name()))
			}
		}
		if len(files) == found {
			return nil, &UnreadableError{p, errNoFiles, "write -c with a file, or put one there"}
		}
	}
	return files, nil
}

var errNoFiles = errors.New("the directory holds no *.yaml file")

// instead says what to do about a path that cannot be opened.
func instead(path string, err error) string {
	if !errors.Is(err, fs.ErrNotExist) {
		return unread(err)
	}
	if ext := filepath.Ext(path); ext != ".yaml" && ext != ".yml" {
		return "write -c with a file or directory that is there"
	}
	return "write -c with a file that is there, or make it: streamd init --file " + path
}

// unread says what to do about a path that is there and cannot be read.
func unread(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "let this user read it, or name another file"
	}
	return ""
}

// cause takes the path out of a file error, whose text names it already.
func cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// readAll parses and merges. A nil node means that at least one file is no YAML, which has been reported.
func readAll(files, overlays []string, ps *problems) (*node, error) {
	var root *node
	broken := false
	if len(files) == 0 {
		root = newMapping(Position{}) // a trial without a file
	}
	read := func(file string, apply func(n *node)) error {
		text, err := os.ReadFile(file)
		if err != nil {
			return &UnreadableError{file, cause(err), unread(err)}
		}
		if n := parse(file, text, ps); n != nil {
			apply(n)
		} else {
			broken = true
		}
		return nil
	}
	for _, f := range files {
		err := read(f, func(n *node) {
			if root == nil {
				root = newMapping(Position{Source: f, Line: 1, Column: 1})
			}
			merge(root, n, ps)
		})
		if err != nil {
			return nil, err
		}
	}
	for _, f := range overlays {
		if err := read(f, func(n *node) {
			if root != nil {
				overlay(root, n)
			}
		}); err != nil {
			return nil, err
		}
	}
	if broken {
		return nil, nil //nolint:nilnil // documented: reported in ps
	}
	return root, nil
}

// decode fills the typed struct from a tree that has passed all checks.
func decode(root *node) (*Config, error) {
	cfg := &Config{}
	if err := root.yaml().Decode(cfg); err != nil {
		return nil, fmt.Errorf("decoding a checked configuration: %w", err)
	}
	cfg.Written = Entry{root}
	for i, b := range root.list("brokers") {
		cfg.Brokers[i].Written = Entry{b}
		if e := b.get("embedded"); e != nil && cfg.Brokers[i].Embedded != nil {
			cfg.Brokers[i].Embedded.Written = Entry{e}
		}
	}
	for i, p := range root.list("plugins") {
		cfg.Plugins[i].Written = Entry{p}
	}
	for i, h := range root.list("handlers") {
		cfg.Handlers[i].Config = newRaw(h.get("config"), h, &problems{})
	}
	for i, s := range root.list("streams") {
		a := s.get("allocation")
		cfg.Streams[i].Allocation.Config = newRaw(a.get("config"), a, &problems{})
		cfg.Streams[i].Written = Entry{s}
	}
	return cfg, nil
}

// yaml renders the tree for the YAML library.
func (n *node) yaml() *yaml.Node {
	switch n.kind {
	case mappingNode:
		y := &yaml.Node{Kind: yaml.MappingNode}
		for _, e := range n.entries {
			y.Content = append(y.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: e.key}, e.value.yaml())
		}
		return y
	case listNode:
		y := &yaml.Node{Kind: yaml.SequenceNode}
		for _, it := range n.items {
			y.Content = append(y.Content, it.yaml())
		}
		return y
	case scalarNode:
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: n.tag, Value: n.text}
}
