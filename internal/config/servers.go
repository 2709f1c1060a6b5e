package config

import (
	"strings"

	"github.com/streamd/streamd/internal/rocketmq"
)

// checkServers holds what stands under name_servers against what the client takes.
func checkServers(items []*node, ps *problems) {
	var sound []string
	for _, n := range items {
		if n.kind != scalarNode {
			continue
		}
		parts := splitAddresses(n.text)
		if len(parts) == 0 && !n.isNull() {
			ps.add(n.pos, "HOST:9876", "a name server's address is empty")
		}
		for _, a := range parts {
			if _, err := rocketmq.ParseNameServers(a); err == nil {
				sound = append(sound, a)
				continue
			}
			what := "name server"
			if strings.Contains(a, "://") {
				what = "list of name servers"
			}
			ps.add(n.pos, addressHint(n, a), "%s is no address of a %s", n.quoted(a), what)
		}
	}
	if len(sound) < 2 {
		return
	}
	if _, err := rocketmq.ParseNameServers(sound...); err != nil {
		ps.add(items[0].pos, "the http:// address alone, or host:port of each name server", "name_servers: the address of a list and other addresses exclude each other")
	}
}

func addressHint(n *node, a string) string {
	switch {
	case strings.Contains(a, "://"):
		return "http://HOST:8080/rocketmq/nsaddr, or HOST:9876"
	case n.written == "" && strings.Trim(a, "0123456789") == "":
		return "HOST:" + a
	case n.written == "" && !strings.Contains(a, ":"):
		return a + ":9876"
	}
	return "HOST:9876, or [IPv6]:9876"
}
