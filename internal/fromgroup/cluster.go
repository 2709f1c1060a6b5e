package fromgroup

import (
	"cmp"
	"strings"

	"github.com/streamd/streamd/internal/config"
)

// The variables that a draft takes its keys from when nobody says where they are.
const (
	envAccessKey = "ROCKETMQ_ACCESS_KEY"
	envSecretKey = "ROCKETMQ_SECRET_KEY" //nolint:gosec // the name of a variable, no secret
)

// Broker is the cluster as a draft names it.
type Broker struct {
	Name        string // "" = main
	NameServers []string
	Source      string // where the addresses are from, for a comment
	// AccessKey and SecretKey are references such as ${file:/run/secrets/mq}; a written secret is replaced by one to the
	// environment. Empty = requests are not signed.
	AccessKey, SecretKey   string
	Namespace, NamespaceV2 string
	HeartbeatV2            bool
	TLS                    *config.ClientTLS
}

func (p *page) cluster(b *Broker) {
	p.line(0, "brokers:", "")
	p.line(2, "- name: "+scalar(cmp.Or(b.Name, "main")), "")
	p.line(4, "name_servers: "+list(b.NameServers), b.Source)
	p.keys(b)
	switch {
	case b.Namespace != "":
		p.line(4, "namespace: "+scalar(b.Namespace), "names are "+b.Namespace+"%NAME on the wire")
	case b.NamespaceV2 != "":
		p.line(4, "namespace_v2: "+scalar(b.NamespaceV2), "as namespaceV2 of the members")
	}
	if b.HeartbeatV2 {
		p.line(4, "heartbeat_v2: true", "as useHeartbeatV2 of the members")
	}
	p.transport(b.TLS)
	p.blank()
}

func (p *page) keys(b *Broker) {
	access, secret := b.AccessKey, b.SecretKey
	if access == "" {
		p.off(4, `access_key: "${env:`+envAccessKey+`}"`, "if the cluster has access control: docs/security.md")
		p.off(4, `secret_key: "${env:`+envSecretKey+`}"`, "or ${file:/run/secrets/mq}; never the secret itself")
		return
	}
	p.line(4, "access_key: "+reference(access), "")
	if !strings.HasPrefix(secret, "${") {
		p.line(4, `secret_key: "${env:`+envSecretKey+`}"`, "set the variable, or write ${file:PATH}: no secret stands here")
		return
	}
	p.line(4, "secret_key: "+reference(secret), "")
}

func (p *page) transport(tls *config.ClientTLS) {
	if tls == nil {
		p.off(4, "tls: {}", "if the cluster speaks TLS; with ca:, cert: and key: for authorities and a certificate of one's own")
		return
	}
	var parts []string
	for _, one := range []struct{ key, value string }{{"ca", tls.CA}, {"cert", tls.Cert}, {"key", tls.Key}, {"server_name", tls.ServerName}} {
		if one.value != "" {
			parts = append(parts, one.key+": "+scalar(one.value))
		}
	}
	if tls.SkipVerify {
		parts = append(parts, "skip_verify: true")
	}
	p.line(4, "tls: {"+strings.Join(parts, ", ")+"}", "")
}

// handler writes the place where a handler belongs.
func (p *page) handler(shared bool) {
	p.note(0, "The handler is yours to fill in: nothing is behind this command yet, and until there is streamd takes no message.\n"+
		"A new one: streamd plugin new handler NAME, then go build; docs/handlers.md tells the rest.")
	if shared {
		p.note(0, "What a handler acknowledges no other member of the group gets: try one that only logs (plugins/log, made by make build as "+
			"bin/plugins/log) in a group of its own.")
	} else {
		p.note(0, "To see messages first: command: [./bin/plugins/log], made by make build, logs and acknowledges each.")
	}
	p.line(0, "plugins:", "")
	p.line(2, "- name: mine", "")
	p.line(4, "command: [./my-handler]", "path of the binary and its arguments; no shell splits them")
	p.line(0, "handlers:", "")
	p.line(2, "- name: handler", "")
	p.line(4, "plugin: mine", "")
	p.off(4, "config: {}", "goes to the handler as JSON")
	p.blank()
}

func (p *page) rest() {
	p.blank()
	p.line(0, "state_dir: ./state", "what must outlive a restart; one streamd at a time uses it")
	p.off(0, `health: {listen: ":8421"}`, "/livez and /readyz for probes")
}
