package fromgroup

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// retries takes how often a failed message comes again, and what becomes of it then.
func (d *draft) retries() {
	p := &d.page
	if d.broadcasting {
		p.line(4, "on_exhausted: block", "Java drops a failed message of a broadcasting group; as here: skip, with accept_loss: true")
		return
	}
	a := d.agreed("maxReconsumeTimes", d.facts.told("maxReconsumeTimes"))
	n, err := strconv.Atoi(a.value)
	switch {
	case err != nil:
		d.groupRetries()
	case n < 0 && d.order != "none":
		p.line(4, "on_exhausted: block", a.source+" is -1: an orderly listener is tried without end, so that the message holds its queue")
	case n < 0:
		p.line(4, "retry: {max_retries: 16}", a.source+" is -1, which means 16; then the group's dead letters")
	default:
		if n > maxRetries {
			d.warn("maxReconsumeTimes is %d, and the most that streamd takes is %d", n, maxRetries)
			n = maxRetries
		}
		p.line(4, "retry: {max_retries: "+number(n)+"}", a.source+"; then the group's dead letters")
	}
}

// groupRetries takes the group's own setting, which brokers apply to members that say none.
func (d *draft) groupRetries() {
	for _, s := range d.facts.Settings {
		if s.Group == nil {
			continue
		}
		if n := int(s.Group.RetryMaxTimes); n >= 0 && n <= maxRetries {
			d.page.line(4, "retry: {max_retries: "+number(n)+"}", "retryMaxTimes of the group's settings at broker "+s.Broker+"; no member tells its own")
			return
		}
	}
	d.page.off(4, "retry: {max_retries: 16}", "not known: maxReconsumeTimes of the consumer")
}

// group looks at the group's settings at the brokers: they are in force for every member, streamd too.
func (d *draft) group() {
	first := ""
	for _, s := range d.facts.Settings {
		if s.Group == nil {
			continue
		}
		switch text := summary(s.Group); {
		case first == "":
			first = text
			d.page.note(4, "The group's settings, kept by the brokers and in force for every member: "+text+".")
		case text != first:
			d.warn("the group's settings differ: broker %s has %s", s.Broker, text)
		}
		d.settings(&s)
	}
}

func (d *draft) settings(s *GroupSettings) {
	g := s.Group
	if !g.ConsumeEnable {
		d.warn("consumption of the group is switched off at broker %s (consumeEnable=false): streamd waits and says group_disabled until mqadmin updateSubGroup -c CLUSTER -g %s -s true", s.Broker, d.facts.Group)
	}
	if d.broadcasting && !g.ConsumeBroadcastEnable {
		d.warn("broker %s forbids broadcasting to the group (consumeBroadcastEnable=false)", s.Broker)
	}
	if g.RetryQueues == 0 && !d.broadcasting {
		d.warn("the group has no retry queues at broker %s (retryQueueNums=0): failed messages cannot be sent back, and streamd holds them", s.Broker)
	}
	if g.ConsumeMessageOrderly != nil && *g.ConsumeMessageOrderly && d.order == "none" {
		d.warn("the group's settings at broker %s say that it is consumed in order (consumeMessageOrderly), which concerns POP only; look whether order: queue is meant", s.Broker)
	}
}

// summary lists the settings that bear on a consumer.
func summary(g *wire.SubscriptionGroup) string {
	parts := []string{
		"consumeEnable " + strconv.FormatBool(g.ConsumeEnable), "consumeBroadcastEnable " + strconv.FormatBool(g.ConsumeBroadcastEnable),
		"retryMaxTimes " + strconv.Itoa(int(g.RetryMaxTimes)) + " (for members that say none)", "retryQueueNums " + strconv.Itoa(int(g.RetryQueues)),
	}
	var policy struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(g.RetryPolicy, &policy) == nil && policy.Type != "" {
		parts = append(parts, "groupRetryPolicy "+policy.Type+" (POP only)")
	}
	return strings.Join(parts, ", ")
}
