package config

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Dev asks for a config without its clusters: every broker of it becomes an embedded one, with data of its own.
type Dev struct {
	Listen  string // address of the first one; the others take the ports after it
	DataDir string // folder that gets one for each of them; "" = in memory
}

// devName is the broker's name when the config names none.
const devName = "dev"

// devKeys are the keys of an embedded broker that say what it is for: they stay. All others are about where its data is and
// who may come in, and that must not be the real one's.
func devKeys() []string { return []string{"topics", "delay_levels"} }

// DevDelayLevels are RocketMQ's 18 levels, shortened, so that retries and dead letters are seen within seconds.
func DevDelayLevels() []string {
	return []string{"100ms", "200ms", "1s", "1s", "2s", "2s", "3s", "3s", "4s", "4s", "5s", "5s", "5s", "5s", "5s", "5s", "5s", "5s"}
}

// replaceBrokers puts an embedded broker into the place of each configured one, and returns what was replaced, for people.
// It must come before anything that reads NAMESRV_ADDR: no variable may lead a trial to a real cluster.
func replaceBrokers(root *node, dev *Dev) (replaced []string) {
	at := Position{Source: "--dev"}
	list := root.get("brokers")
	if list == nil || list.kind == listNode && len(list.items) == 0 {
		only := newMapping(at)
		only.set("name", at, newText(devName, at))
		list = &node{kind: listNode, pos: at, items: []*node{only}}
		root.set("brokers", at, list)
	}
	for i, b := range list.items {
		if b.kind != mappingNode {
			continue // told by the schema
		}
		if was := describeBroker(b); was != "" {
			replaced = append(replaced, was)
		}
		b.set("embedded", at, devBroker(b.get("embedded"), portAfter(dev.Listen, i), dev.folder(b)))
		b.entries = slices.DeleteFunc(b.entries, func(e entry) bool { return e.key != "name" && e.key != "embedded" })
	}
	return replaced
}

// describeBroker says what a broker was before it was replaced, without secrets.
func describeBroker(b *node) string {
	var was []string
	if servers := b.get("name_servers"); servers != nil {
		texts := []string{servers.shown()}
		if servers.kind == listNode {
			texts = nil
			for _, it := range servers.items {
				texts = append(texts, it.shown())
			}
		}
		was = append(was, "name_servers "+strings.Join(texts, ", "))
	}
	if e := b.get("embedded"); e != nil {
		what := "its embedded broker"
		if dir, ok := e.str("data_dir"); ok {
			what += " with the data in " + dir.shown()
		}
		was = append(was, what)
	}
	if len(was) == 0 {
		return ""
	}
	return fmt.Sprintf("brokers[%s]: %s", strings.Trim(nameOf(b), `"`), strings.Join(was, ", "))
}

// folder is where the data of one broker is.
func (d *Dev) folder(b *node) string {
	name, ok := b.str("name")
	if d.DataDir == "" || !ok {
		return ""
	}
	return filepath.Join(d.DataDir, strings.Map(func(r rune) rune {
		if r == '/' || r == 0 {
			return '_'
		}
		return r
	}, name.text))
}

func devBroker(was *node, listen, dataDir string) *node {
	at := Position{Source: "--dev"}
	e := newMapping(at)
	for _, key := range devKeys() {
		if v := was.get(key); v != nil {
			e.set(key, was.keyPos(key), v)
		}
	}
	e.set("listen", at, newText(listen, at))
	e.set("data_dir", at, newText(dataDir, at))
	if e.get("delay_levels") == nil {
		levels := &node{kind: listNode, pos: at}
		for _, l := range DevDelayLevels() {
			levels.items = append(levels.items, newText(l, at))
		}
		e.set("delay_levels", at, levels)
	}
	return e
}

// portAfter is the address n ports further.
func portAfter(address string, n int) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address // told by the checks
	}
	p, err := strconv.Atoi(port)
	if err != nil || p == 0 {
		return address
	}
	return net.JoinHostPort(host, strconv.Itoa(p+n))
}
