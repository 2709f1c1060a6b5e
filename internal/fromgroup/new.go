package fromgroup

import "github.com/streamd/streamd/internal/rocketmq/wire"

// Draft is a config, and what whoever takes it has to look at.
type Draft struct {
	Text     string   `json:"config"`
	Warnings []string `json:"warnings"`
}

// New writes a config for a group that is not there yet. A name left out has a stand-in. The error is a name that RocketMQ
// does not allow.
func New(b Broker, group string, topics []string) (*Draft, error) {
	d := &Draft{Warnings: []string{}}
	p := &page{}
	p.note(0, "A config for streamd, by streamd init. Every key: docs/reference/configuration.md.\n"+
		"Check it with streamd validate -c FILE, run it with streamd run -c FILE.")
	p.cluster(&b)
	p.handler(false)
	name, said := group, ""
	if group == "" {
		name, said = "my-group", "change it: members of one group share the messages"
	} else if err := wire.ValidateGroup(group); err != nil {
		return nil, err //nolint:wrapcheck // says which name, and why
	}
	p.line(0, "streams:", "")
	p.line(2, "- name: "+scalar(name), "in logs and metrics")
	p.line(4, "group: "+scalar(name), said)
	p.line(4, "handler: handler", "")
	p.line(4, "subscribe:", "")
	if len(topics) == 0 {
		p.line(6, "- topic: MyTopic", "change it")
	}
	for _, topic := range topics {
		if err := wire.ValidateTopic(topic); err != nil {
			return nil, err //nolint:wrapcheck // as above
		}
		p.line(6, "- topic: "+scalar(topic), "")
	}
	p.off(8, `tags: "created || paid"`, `left out: every message; or sql: "amount > 100"`)
	p.line(4, "start_from: last", "of a new group: last, first, or {timestamp: 2026-11-01T00:00:00Z}")
	p.off(4, "model: clustering", "broadcasting: every member handles every message")
	p.off(4, "order: none", "or queue, or key: docs/order.md")
	p.off(4, "concurrency: 20", "messages that run at once")
	p.off(4, "deadline: 60s", "per message, from its start")
	p.off(4, "retry: {max_retries: 16}", "then the dead letters of the group")
	p.rest()
	d.Text = p.text.String()
	return d, nil
}
