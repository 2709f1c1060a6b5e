package config

import (
	"cmp"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// checkMeaning reports what no schema sees: missing references, contradictions, names RocketMQ refuses. It works on nodes,
// so that it says all it can even when other parts of the tree are wrong.
func checkMeaning(root *node, opts Options, ps *problems) {
	for _, section := range []string{"brokers", "plugins", "handlers", "streams"} {
		duplicateNames(root, section, ps)
	}
	checkBrokers(root, ps)
	checkListeners(root, ps)
	for _, p := range root.list("plugins") {
		checkPlugin(p, ps)
	}
	for _, h := range root.list("handlers") {
		reference(root, h, "handler", "plugin", "plugins", ps)
	}
	groups := map[[2]string]Position{}
	for _, s := range root.list("streams") {
		checkStream(root, s, opts, groups, ps)
	}
}

func checkBrokers(root *node, ps *problems) {
	brokers := root.get("brokers")
	if brokers == nil || brokers.kind == listNode && len(brokers.items) == 0 {
		pos := root.pos
		if brokers != nil {
			pos = brokers.pos
		}
		ps.add(pos, `brokers: [{name: main, name_servers: ["HOST:9876"]}], the environment variable `+namesrvEnv+", or brokers: [{name: local, embedded: {}}]", "no broker is named")
		return
	}
	taken := map[string]Position{} // addresses and folders of embedded brokers
	for _, b := range root.list("brokers") {
		checkAccess(b, ps)
		servers := b.get("name_servers")
		switch {
		case b.kind != mappingNode:
		case b.get("embedded") != nil:
			checkEmbedded(b, b.get("embedded"), taken, ps)
		case servers == nil:
			ps.add(b.pos, `name_servers: ["HOST:9876"], the environment variable `+namesrvEnv+", or embedded: {}", "broker %s has no name servers", nameOf(b))
		case servers.kind == listNode && len(servers.items) == 0:
			ps.add(servers.pos, `["HOST:9876"]`, "name_servers is empty")
		case servers.kind == scalarNode:
			checkServers([]*node{servers}, ps)
		default:
			checkServers(servers.items, ps)
		}
	}
}

// quoted is a part of a value for an error, or the reference it was injected by.
func (n *node) quoted(part string) string {
	if n.written != "" {
		return n.written
	}
	return strconv.Quote(part)
}

func hostPort(s string, needHost bool) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil || needHost && host == "" {
		return false
	}
	p, err := strconv.Atoi(port)
	return err == nil && p >= 0 && p <= 65535 && (p > 0 || !needHost)
}

func checkListeners(root *node, ps *problems) {
	var admin, health *node
	for _, l := range []struct {
		section string
		n       **node
	}{{"admin", &admin}, {"health", &health}} {
		n, ok := root.get(l.section).str("listen")
		if !ok {
			continue
		}
		*l.n = n
		if n.tag == "!!str" && !hostPort(n.text, false) { // a number is told by the schema
			ps.add(n.pos, "127.0.0.1:8420 or :8420", "%s.listen: %s is no address", l.section, n.quoted(n.text))
		}
	}
	if admin != nil && health != nil && admin.text == health.text && !strings.HasSuffix(admin.text, ":0") {
		ps.add(health.pos, "another port", "health.listen is the address of admin.listen at %s", admin.pos)
	}
	for _, e := range attributesOf(root) {
		if !attributeText.MatchString(e.key) || !attributeText.MatchString(e.value.text) {
			ps.add(e.pos, "letters, digits, '.', '_' and '-'", "attributes: %q: %s cannot stand in a client id", e.key, e.value.quoted(e.value.text))
		}
	}
	if m, ok := root.str("member"); ok && strings.ContainsAny(m.text, "@#,= \t\n") {
		ps.add(m.pos, "letters, digits, '-', '_' and '.'", "member: %s has a character that client ids use themselves", m.quoted(m.text))
	}
}

// attributeText is what allocate.MemberID takes.
var attributeText = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

func attributesOf(root *node) []entry {
	if a := root.get("attributes"); a != nil && a.kind == mappingNode {
		return a.entries
	}
	return nil
}

func checkPlugin(p *node, ps *problems) {
	command := p.list("command")
	if len(command) > 0 && command[0].kind == scalarNode && strings.ContainsAny(command[0].text, " \t") && len(command) == 1 {
		words := strings.Fields(command[0].text)
		ps.add(command[0].pos, "["+strings.Join(words, ", ")+"], as no shell splits it", "the command %s holds spaces", command[0].quoted(command[0].text))
	}
	if env := p.get("env"); env != nil {
		for _, e := range env.entries {
			if e.key == "" || strings.ContainsAny(e.key, "= ") {
				ps.add(e.pos, "NAME: VALUE", "%q is no name of a variable", e.key)
			}
		}
	}
}

// nameOf names an entry for an error.
func nameOf(n *node) string {
	if name, ok := n.str("name"); ok {
		return strconv.Quote(name.shown())
	}
	return "without a name"
}

// reference reports a key that names nothing in its section.
func reference(root, it *node, what, key, section string, ps *problems) {
	if it.kind != mappingNode {
		return
	}
	names := make([]string, 0, 8)
	for _, c := range root.list(section) {
		if n, ok := c.str("name"); ok && !slices.Contains(names, n.text) {
			names = append(names, n.text)
		}
	}
	ref, ok := it.str(key)
	switch {
	case len(names) == 0 && section == "brokers": // told already, at the root
	case !ok && it.get(key) == nil && len(names) == 0:
		ps.add(it.pos, section+": [{name: …}]", "%s %s needs a %s and %s is empty", what, nameOf(it), key, section)
	case !ok && it.get(key) == nil:
		ps.add(it.pos, key+": "+oneOf(names), "%s %s lacks the key %q", what, nameOf(it), key)
	case ok && !slices.Contains(names, ref.text):
		try := nearest(ref.text, names)
		if try == "" {
			try = oneOf(names)
		}
		if try == "" {
			try = section + ": [{name: " + ref.shown() + ", …}]"
		}
		ps.add(ref.pos, try, "%s %s names the %s %s, which does not exist", what, nameOf(it), key, ref.quoted(ref.text))
	}
}

func checkStream(root, s *node, opts Options, groups map[[2]string]Position, ps *problems) {
	reference(root, s, "stream", "broker", "brokers", ps)
	reference(root, s, "stream", "handler", "handlers", ps)
	if g, ok := s.str("group"); ok {
		checkGroup(s, g, groups, ps)
	}
	if o, ok := s.get("outputs").str("topic"); ok {
		checkTopic(o, ps)
	}
	topics := map[string]Position{}
	sql := sqlOf(root, s, opts.SQL)
	for _, sub := range s.list("subscribe") {
		checkSubscription(sub, sql, topics, ps)
	}
	checkAllocation(root, s, opts.Strategies, ps)
	checkBroadcasting(root, s, ps)
	checkBounds(s, ps)
	checkLoss(s, ps)
	checkOrder(root, s, ps)
	if at, ok := s.get("start_from").str("timestamp"); ok {
		if _, err := time.Parse(time.RFC3339, at.text); err != nil {
			ps.add(at.pos, "2026-11-01T00:00:00Z", "timestamp: %s is no time of RFC 3339", at.shown())
		}
	}
}

func checkGroup(s, g *node, groups map[[2]string]Position, ps *problems) {
	if wire.ValidateGroup(g.text) != nil {
		ps.add(g.pos, fmt.Sprintf("up to %d letters, digits, '_' and '-'", wire.MaxGroupName), "group: RocketMQ does not allow %s", g.quoted(g.text))
	}
	broker, _ := s.str("broker")
	if broker == nil {
		return
	}
	key := [2]string{broker.text, g.text}
	if at, dup := groups[key]; dup {
		ps.add(g.pos, "another group, or one stream with both subscriptions", "group %s is already joined by the stream at %s", g.quoted(g.text), at)
		return
	}
	groups[key] = g.pos
}

func checkTopic(t *node, ps *problems) {
	if wire.ValidateTopic(t.text) != nil {
		ps.add(t.pos, fmt.Sprintf("up to %d letters, digits, '_' and '-'", wire.MaxTopicName), "topic: RocketMQ does not allow %s", t.quoted(t.text))
	}
}

func checkSubscription(sub *node, sql sqlReader, topics map[string]Position, ps *problems) {
	checkFilter(sub, sql, ps)
	if t, ok := sub.str("topic"); ok {
		checkTopic(t, ps)
		if strings.HasPrefix(t.text, "%RETRY%") {
			ps.add(t.pos, "removing it", "the retry topic is subscribed by itself")
		}
		if at, dup := topics[t.text]; dup {
			ps.add(t.pos, "one entry with tags: \"a || b\"", "topic %s is subscribed twice, first at %s", t.quoted(t.text), at)
		} else {
			topics[t.text] = t.pos
		}
	}
}

func checkAllocation(root, s *node, strategies []string, ps *problems) {
	a := s.get("allocation")
	if a == nil || a.kind != mappingNode {
		return
	}
	strategy, hasStrategy := a.str("strategy")
	plugin, hasPlugin := a.str("plugin")
	switch {
	case hasStrategy && hasPlugin:
		ps.add(strategy.pos, "one of the two", "strategy and plugin (%s) exclude each other", plugin.pos)
	case hasPlugin:
		reference(root, a, "allocation", "plugin", "plugins", ps)
	case hasStrategy:
		known("strategy", strategy, strategies, ps)
	}
	if fallback, ok := a.str("fallback"); ok {
		known("fallback", fallback, strategies, ps)
	}
	if use, ok := a.str("use"); ok && !hasPlugin {
		ps.add(use.pos, "plugin: NAME beside it", "use needs a plugin")
	}
}

// known reports a name that is none of streamd's own strategies.
func known(key string, n *node, strategies []string, ps *problems) {
	if len(strategies) == 0 || slices.Contains(strategies, n.text) {
		return
	}
	ps.add(n.pos, cmp.Or(nearest(n.text, strategies), oneOf(strategies)), "%s: there is no %s", key, n.quoted(n.text))
}

// checkLoss wants a loss to be meant, and only where one can be.
func checkLoss(s *node, ps *problems) {
	end, ok := s.str("on_exhausted")
	accept, _ := s.str("accept_loss")
	accepted := accept != nil && accept.text == "true"
	switch {
	case !ok:
	case end.text == "skip" && !accepted:
		ps.add(end.pos, "accept_loss: true beside it, or "+lossless(s), "on_exhausted: skip loses messages")
	case end.text != "skip" && accepted:
		ps.add(accept.pos, "removing it, or on_exhausted: skip", "accept_loss says that a loss is meant, and on_exhausted: %s loses nothing", end.shown())
	}
}

// checkBounds reports limits that cannot both hold. Only what somebody wrote is held against what somebody wrote.
func checkBounds(s *node, ps *problems) {
	batch, window := s.get("batch"), s.get("window")
	exceeds(batch, "max", window, "messages", "batch.max", "window.messages", ps)
	exceeds(batch, "bytes", window, "bytes", "batch.bytes", "window.bytes", ps)
	exceeds(window, "messages", window, "span", "window.messages", "window.span", ps)
	exceeds(window, "bytes", window, "stream_bytes", "window.bytes", "window.stream_bytes", ps)
}

func exceeds(a *node, aKey string, b *node, bKey, aName, bName string, ps *problems) {
	x, ok := a.str(aKey)
	y, ok2 := b.str(bKey)
	if !ok || !ok2 || x.byDefault || y.byDefault {
		return
	}
	if m, ok := count(x); ok {
		if n, ok := count(y); ok && m > n {
			ps.add(x.pos, "at most "+y.shown(), "%s is %s and can never be reached: %s is %s at %s", aName, x.shown(), bName, y.shown(), y.pos)
		}
	}
}

func count(n *node) (int64, bool) {
	if s, err := ParseSize(n.text); err == nil {
		return int64(s), true
	}
	i, err := strconv.ParseInt(n.text, 10, 64)
	return i, err == nil
}
