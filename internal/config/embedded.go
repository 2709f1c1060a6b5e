package config

import (
	"cmp"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Embedded is a broker that runs in this process (docs/embedded-broker.md).
type Embedded struct {
	Listen      string          `yaml:"listen" default:"127.0.0.1:9876" doc:"Address of name server and broker, which share one listener."`
	Advertise   string          `yaml:"advertise" doc:"host:port that clients are told. Left out: the address of listen. Needed when that is every address of the machine."`
	DataDir     string          `yaml:"data_dir" default:"./data" doc:"Folder of messages, offsets, topics and groups. One process at a time uses it. Empty: all is in memory and goes with the process."`
	Flush       string          `yaml:"flush" default:"sync" enum:"sync,async" doc:"When a message is acknowledged: sync when the disk has it, so that it survives a power loss; async when the operating system has it, so that it survives the end of the process, and a power loss takes what came in the last half second."`
	Retention   Retention       `yaml:"retention" doc:"What is dropped to make room, read or not. Without either nothing is."`
	TLS         *ServerTLS      `yaml:"tls" doc:"Makes every client speak TLS. Files are read again on SIGHUP."`
	ACL         string          `yaml:"acl" doc:"Path of a file in the format of RocketMQ's plain_acl.yml: who may do what. Left out: everybody may do everything. It is read again on SIGHUP."`
	Topics      []Topic         `yaml:"topics" doc:"Topics that are made at the start when they are not there. Others are made by the first message sent to them."`
	DelayLevels []time.Duration `yaml:"delay_levels" doc:"Delays of the levels 1, 2, …, which retries go through from level 3 on. Left out: RocketMQ's 18, from 1s to 2h. Short ones are for demonstrations and tests."`

	// Dev says that run --dev made it: it holds no data that anybody needs, and where its port is taken it takes the next.
	Dev bool `yaml:"-"`
	// Flags says that streamd broker made it of its flags.
	Flags bool `yaml:"-"`

	Written Entry `yaml:"-"`
}

// Key is what people write to set a key: that of brokers[].embedded, or the flag of streamd broker.
func (e *Embedded) Key(key string) string {
	if !e.Flags {
		return "embedded." + key
	}
	switch key {
	case "data_dir":
		return "--data"
	case "topics":
		return "--topic"
	}
	return "--" + strings.NewReplacer(".", "-", "_", "-").Replace(key)
}

// Retention bounds what an embedded broker keeps.
type Retention struct {
	Age  time.Duration `yaml:"age" min:"1m" doc:"Messages that are older are dropped. Left out: no limit."`
	Size Size          `yaml:"size" min:"64MiB" doc:"When all messages together take more, the oldest are dropped. Left out: no limit."`
}

// ServerTLS is how an embedded broker proves who it is.
type ServerTLS struct {
	Cert     string `yaml:"cert" required:"true" doc:"File with the certificate and those it was signed by, in PEM."`
	Key      string `yaml:"key" required:"true" doc:"File with the private key, in PEM."`
	ClientCA string `yaml:"client_ca" doc:"File with the authorities, in PEM, of which clients need a certificate. Left out: clients need none."`
}

// ClientTLS is how streamd speaks TLS to a cluster.
type ClientTLS struct {
	CA         string `yaml:"ca" doc:"File with the authorities that servers' certificates must be from, in PEM. Left out: those of the system."`
	Cert       string `yaml:"cert" doc:"File with the certificate that servers may ask for, in PEM. Needs key."`
	Key        string `yaml:"key" doc:"File with its private key, in PEM."`
	ServerName string `yaml:"server_name" doc:"Name that servers must prove. Left out: the host that was connected to, which for brokers is the one that routes name."`
	SkipVerify bool   `yaml:"skip_verify" default:"false" doc:"Takes any certificate, so that anybody on the way may read and change everything. A warning at each start."`
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
func checkEmbedded(b, e *node, taken map[string]Position, ps *problems) {
	if e.kind != mappingNode {
		return // told by the schema
	}
	if servers := b.get("name_servers"); servers != nil {
		ps.add(b.keyPos("name_servers"), "one of the two", "name_servers and embedded (%s) exclude each other", b.keyPos("embedded"))
	}
	checkEmbeddedAddress(e, taken, ps)
	checkSecurity(b, e, ps)
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

// checkSecurity wants streamd's own client to be one that its broker lets in.
func checkSecurity(b, e *node, ps *problems) {
	if ca, ok := e.get("tls").str("client_ca"); ok && b.get("name") != nil {
		if _, has := b.get("tls").str("cert"); !has {
			ps.add(ca.pos, "tls: {cert: …, key: …} beside embedded", "embedded.tls.client_ca wants a certificate of every client, and streamd itself has none")
		}
	}
}

// checkAccess reports halves of a pair.
func checkAccess(b *node, ps *problems) {
	pair(b, "access_key", "secret_key", "", ps)
	pair(b.get("tls"), "cert", "key", "tls.", ps)
	if one, ok := b.str("namespace"); ok {
		if two, both := b.str("namespace_v2"); both {
			ps.add(two.pos, "namespace for names like NAMESPACE%NAME, namespace_v2 for the header fields of 5.2", "namespace_v2 excludes namespace (%s)", one.pos)
		}
	}
	if skip, ok := b.get("tls").str("skip_verify"); ok && skip.text == "true" {
		if ca, ok := b.get("tls").str("ca"); ok {
			ps.add(skip.pos, "one of the two", "tls.skip_verify takes any certificate, and tls.ca (%s) says which to take", ca.pos)
		}
	}
}

func pair(n *node, one, other, prefix string, ps *problems) {
	a, hasA := n.str(one)
	b, hasB := n.str(other)
	switch {
	case hasA && !hasB:
		ps.add(a.pos, other+": … beside it", "%s%s needs %s%s", prefix, one, prefix, other)
	case hasB && !hasA:
		ps.add(b.pos, one+": … beside it", "%s%s needs %s%s", prefix, other, prefix, one)
	}
}

// maxDelayLevels bounds the table: clients send a level in a byte or two, and no sane one has more.
const maxDelayLevels = 64

func checkEmbeddedAddress(e *node, taken map[string]Position, ps *problems) {
	advertise, hasAdvertise := e.str("advertise")
	if hasAdvertise && advertise.tag == "!!str" && (!hostPort(advertise.text, true) || Wildcard(advertise.text)) {
		ps.add(advertise.pos, "the name or address of this machine, and the port", "embedded.advertise: %s is no address that a client can connect to", advertise.quoted(advertise.text))
	}
	if dir, ok := e.str("data_dir"); ok {
		key, at := "data "+filepath.Clean(dir.text), dir.pos
		if dir.byDefault {
			at = e.pos
		}
		if other, dup := taken[key]; dup {
			ps.add(at, "data_dir: DIR, another one for each", "embedded.data_dir %s is the folder of the one at %s", dir.quoted(dir.text), other)
		}
		taken[key] = at
	}
	listen, ok := e.str("listen")
	switch {
	case !ok && e.get("listen") != nil:
		ps.add(e.get("listen").pos, "127.0.0.1:9876", "embedded.listen is empty")
	case !ok, listen.tag != "!!str": // told by the schema
	case !hostPort(listen.text, false):
		ps.add(listen.pos, "127.0.0.1:9876 or :9876", "embedded.listen: %s is no address", listen.quoted(listen.text))
	case Wildcard(listen.text) && !hasAdvertise:
		ps.add(listen.pos, beside(listen, "advertise", "HOST:PORT"), "embedded.listen: %s is every address of this machine, and clients must be told one", listen.quoted(listen.text))
	case strings.HasSuffix(listen.text, ":0"):
	default:
		if at, dup := taken[listen.text]; dup {
			ps.add(listen.pos, "another port", "embedded.listen is the address of the one at %s", at)
		}
		taken[listen.text] = listen.pos
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
