package config

import (
	"fmt"
	"strconv"
	"strings"
)

// EmbeddedFrom makes the settings of an embedded broker out of flags, whose keys are those of brokers[].embedded. A list is
// separated by commas; a topic is NAME or NAME:QUEUES. The error is an *InvalidError with every problem found, each in the
// words of its flag.
func EmbeddedFrom(flags []Flag) (*Embedded, error) {
	spec := describeConfig().at([]string{"brokers", "0", "embedded"})
	root, ps := newMapping(Position{}), problems{}
	for _, f := range flags {
		path, at := strings.Split(f.Key, "."), Position{Source: f.Name}
		put(root, path, flagNode(spec.at(path), f.Value, at, &ps), &ps)
	}
	certificateFlags(root, flags, &ps)
	spec.settle(root)
	if err := checkSchema(root, spec, &ps); err != nil {
		return nil, err
	}
	spec.fill(root)
	checkEmbedded(newMapping(Position{}), root, map[string]Position{}, &ps)
	for i := range ps.list {
		ps.list[i].What = inWordsOf(flags, ps.list[i])
	}
	if err := ps.err(nil); err != nil {
		return nil, err
	}
	e := &Embedded{Flags: true}
	if err := root.yaml().Decode(e); err != nil {
		return nil, fmt.Errorf("decoding checked flags: %w", err)
	}
	return e, nil
}

// certificateFlags reports a certificate without its key, and the other way round, and takes out what needs them.
func certificateFlags(root *node, flags []Flag, ps *problems) {
	tls := root.get("tls")
	_, hasCert := tls.str("cert")
	_, hasKey := tls.str("key")
	if tls == nil || hasCert && hasKey {
		return
	}
	for _, f := range flags {
		at := Position{Source: f.Name}
		switch {
		case f.Key == "tls.cert" && hasCert:
			ps.add(at, "--tls-key FILE beside it", "a certificate needs its private key")
		case f.Key == "tls.key" && hasKey:
			ps.add(at, "--tls-cert FILE beside it", "a private key needs its certificate")
		case f.Key == "tls.client_ca" && !hasCert && !hasKey:
			ps.add(at, "--tls-cert FILE and --tls-key FILE beside it", "clients show a certificate only to a broker that has one")
		case strings.HasPrefix(f.Key, "tls.") && strings.TrimSpace(f.Value) == "":
			ps.add(at, "a path, or removing the flag", "it is empty")
		}
	}
	root.remove("tls")
}

// inWordsOf says a problem without the key, which the flag that it is told of stands for.
func inWordsOf(flags []Flag, p Problem) string {
	for _, f := range flags {
		if f.Name != p.Where.Source {
			continue
		}
		for _, name := range []string{"embedded." + f.Key, f.Key, "topic", "name", "queues"} {
			if rest, ok := strings.CutPrefix(p.What, name+": "); ok {
				return rest
			}
			if rest, ok := strings.CutPrefix(p.What, name+" "); ok && name != "topic" {
				return "it " + rest
			}
		}
	}
	return p.What
}

func flagNode(f *field, value string, at Position, ps *problems) *node {
	if f.kind != listField {
		return outsideScalar(f, value, at)
	}
	list := &node{kind: listNode, pos: at}
	for part := range strings.SplitSeq(value, ",") {
		part = strings.TrimSpace(part)
		if f.items.kind != objectField {
			list.items = append(list.items, outsideScalar(f.items, part, at))
			continue
		}
		if topic := topicNode(f.items, part, at, ps); topic != nil {
			list.items = append(list.items, topic)
		}
	}
	return list
}

// topicNode reads NAME or NAME:QUEUES; nil = it is neither, which has been reported.
func topicNode(f *field, text string, at Position, ps *problems) *node {
	name, queues, counted := strings.Cut(text, ":")
	if name == "" {
		ps.add(at, "NAME or NAME:QUEUES", "%q names no topic", text)
		return nil
	}
	topic := newMapping(at)
	topic.set("name", at, newText(name, at))
	if !counted {
		return topic
	}
	if _, err := strconv.Atoi(queues); err != nil {
		ps.add(at, name+":8, or "+name+" alone", "%q is no number of queues in %q", queues, text)
		return nil
	}
	topic.set("queues", at, outsideScalar(f.child("queues"), queues, at))
	return topic
}
