package config

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Embedded is a broker that runs in this process (docs/embedded-broker.md).
type Embedded struct {
	Listen      string          `yaml:"listen" default:"127.0.0.1:9876" doc:"Address of name server and broker, which share one listener."`
	Advertise   string          `yaml:"advertise" doc:"host:port that clients are told. Left out: the address of listen. Needed when that is every address of the machine."`
	Topics      []Topic         `yaml:"topics" doc:"Topics that are made at the start when they are not there. Others are made by the first message sent to them."`
	DelayLevels []time.Duration `yaml:"delay_levels" doc:"Delays of the levels 1, 2, …, which retries go through from level 3 on. Left out: RocketMQ's 18, from 1s to 2h. Short ones are for demonstrations and tests."`

	// Dev says that run --dev made it: it holds no data that anybody needs, and where its port is taken it takes the next.
	Dev bool `yaml:"-"`
}

// Topic is one topic of an embedded broker.
type Topic struct {
	Name   string `yaml:"name" required:"true" doc:"Name of the topic."`
	Queues int    `yaml:"queues" default:"8" min:"1" max:"1024" doc:"Its queues. More than it has are added; none are ever taken away."`
}

// Address is what clients are told: advertise, or the address listened on.
func (e *Embedded) Address() string { return cmp.Or(e.Advertise, e.Listen) }

// Servers are the name servers that clients of this broker use; of an embedded one its own address.
func (b *Broker) Servers() []string {
	if b.Embedded != nil {
		return []string{b.Embedded.Address()}
	}
	return b.NameServers
}

// Wildcard reports a listen address that stands for every address of the machine.
func Wildcard(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// checkEmbedded reports what is wrong with brokers[].embedded.
func checkEmbedded(b, e *node, listeners map[string]Position, ps *problems) {
	if e.kind != mappingNode {
		return // told by the schema
	}
	if servers := b.get("name_servers"); servers != nil {
		ps.add(b.keyPos("name_servers"), "one of the two", "name_servers and embedded (%s) exclude each other", b.keyPos("embedded"))
	}
	checkEmbeddedAddress(e, listeners, ps)
	topics := map[string]Position{}
	for _, t := range e.list("topics") {
		name, ok := t.str("name")
		if !ok {
			continue
		}
		checkTopic(name, ps)
		if at, dup := topics[name.text]; dup {
			ps.add(name.pos, "one entry", "topic %s is written twice, first at %s", name.quoted(name.text), at)
		}
		topics[name.text] = name.pos
	}
	if levels := e.list("delay_levels"); len(levels) > maxDelayLevels {
		ps.add(levels[maxDelayLevels].pos, "leaving out the rest", "delay_levels has %d levels, and there are at most %d", len(levels), maxDelayLevels)
	}
}

// maxDelayLevels bounds the table: clients send a level in a byte or two, and no sane one has more.
const maxDelayLevels = 64

func checkEmbeddedAddress(e *node, listeners map[string]Position, ps *problems) {
	advertise, hasAdvertise := e.str("advertise")
	if hasAdvertise && (!hostPort(advertise.text, true) || Wildcard(advertise.text)) {
		ps.add(advertise.pos, "the name or address of this machine, and the port", "embedded.advertise: %s is no address that a client can connect to", advertise.quoted(advertise.text))
	}
	listen, ok := e.str("listen")
	switch {
	case !ok && e.get("listen") != nil:
		ps.add(e.get("listen").pos, "127.0.0.1:9876", "embedded.listen is empty")
	case !ok:
	case !hostPort(listen.text, false):
		ps.add(listen.pos, "127.0.0.1:9876 or :9876", "embedded.listen: %s is no address", listen.quoted(listen.text))
	case Wildcard(listen.text) && !hasAdvertise:
		ps.add(listen.pos, beside(listen, "advertise", "HOST:PORT"), "embedded.listen: %s is every address of this machine, and clients must be told one", listen.quoted(listen.text))
	case strings.HasSuffix(listen.text, ":0"):
	default:
		if at, dup := listeners[listen.text]; dup {
			ps.add(listen.pos, "another port", "embedded.listen is the address of the one at %s", at)
		}
		listeners[listen.text] = listen.pos
	}
}

// beside says how to write another key next to one: as a flag when that one is a flag.
func beside(n *node, key, value string) string {
	if strings.HasPrefix(n.pos.Source, "--") && n.pos.Line == 0 {
		return "--" + strings.ReplaceAll(key, "_", "-") + " " + value
	}
	return key + ": " + value + " beside it"
}

// levelsOf gives the streams of an embedded broker its delay levels, which a handler's wish for a delay is matched against.
func levelsOf(root *node) {
	for _, s := range root.list("streams") {
		name, ok := s.str("broker")
		if !ok {
			continue
		}
		levels := find(root.get("brokers"), name.text).get("embedded").get("delay_levels")
		if levels == nil || levels.kind != listNode {
			continue
		}
		retry := s.get("retry")
		if retry == nil {
			retry = newMapping(levels.pos)
			s.set("retry", levels.pos, retry)
		}
		if retry.kind == mappingNode && retry.get("levels") == nil {
			own := levels.clone()
			own.byDefault = true
			retry.set("levels", own.pos, own)
		}
	}
}

// EmbeddedFrom makes the settings of an embedded broker out of flags, whose keys are those of brokers[].embedded. A list is
// separated by commas; a topic is NAME or NAME:QUEUES. The error is an *InvalidError with every problem found.
func EmbeddedFrom(flags []Flag) (*Embedded, error) {
	spec := describeConfig().at([]string{"brokers", "0", "embedded"})
	root, ps := newMapping(Position{}), problems{}
	for _, f := range flags {
		path, at := strings.Split(f.Key, "."), Position{Source: f.Name}
		put(root, path, flagNode(spec.at(path), f.Value, at), &ps)
	}
	spec.settle(root)
	if err := checkSchema(root, spec, &ps); err != nil {
		return nil, err
	}
	spec.fill(root)
	checkEmbedded(newMapping(Position{}), root, map[string]Position{}, &ps)
	if err := ps.err(nil); err != nil {
		return nil, err
	}
	e := &Embedded{}
	if err := root.yaml().Decode(e); err != nil {
		return nil, fmt.Errorf("decoding checked flags: %w", err)
	}
	return e, nil
}

func flagNode(f *field, value string, at Position) *node {
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
		name, queues, counted := strings.Cut(part, ":")
		topic := newMapping(at)
		topic.set("name", at, newText(name, at))
		if counted {
			topic.set("queues", at, outsideScalar(f.items.child("queues"), queues, at))
		}
		list.items = append(list.items, topic)
	}
	return list
}

// TopicsOf are the topics of a broker that the streams subscribe to, in the order written, each once.
func (c *Config) TopicsOf(broker string) []string {
	var topics []string
	seen := map[string]bool{}
	for i := range c.Streams {
		if c.Streams[i].Broker != broker {
			continue
		}
		for _, sub := range c.Streams[i].Subscribe {
			if !seen[sub.Topic] && !wire.IsRetryTopic(sub.Topic) {
				seen[sub.Topic] = true
				topics = append(topics, sub.Topic)
			}
		}
	}
	return topics
}
