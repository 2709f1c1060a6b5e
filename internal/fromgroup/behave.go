package fromgroup

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func (d *draft) model() {
	f, p := d.facts, &d.page
	a := d.agreed("messageModel", f.told("messageModel"))
	if a.value == "" {
		a = answer{value: f.Model, source: "the brokers' list of members (203)"}
	}
	switch wire.MessageModel(a.value) {
	case wire.Broadcasting:
		d.broadcasting = true
		p.line(4, "model: broadcasting", a.source)
		d.warn("broadcasting: each member keeps its own offsets on its own machine, so this one begins at start_from, whatever the others have handled")
	case wire.Clustering:
		p.line(4, "model: clustering", a.source)
	default:
		p.line(4, "model: clustering", "not known, no member is online: broadcasting if the consumer calls setMessageModel(BROADCASTING)")
	}
}

// start takes where a new group begins. Java reads consumeTimestamp in the time zone of its machine, which nobody tells.
func (d *draft) start() {
	f, p := d.facts, &d.page
	const only = "; a group with stored offsets goes on from them"
	a := d.agreed("consumeFromWhere", f.told("consumeFromWhere"))
	if a.value == "" && f.StartFrom != "" {
		a = answer{value: f.StartFrom, source: "the brokers' list of members (203)"}
	}
	switch wire.ConsumeFromWhere(a.value) {
	case "":
		p.line(4, "start_from: last", "not known, no member tells"+only)
	case wire.ConsumeFromFirstOffset:
		p.line(4, "start_from: first", a.source+only)
	case wire.ConsumeFromTimestamp:
		at := d.agreed("consumeTimestamp", f.told("consumeTimestamp"))
		t, err := time.ParseInLocation("20060102150405", at.value, f.Time.Location())
		if err != nil {
			d.warn("members start at a time that they do not tell (consumeTimestamp %q): set start_from", at.value)
			p.line(4, "start_from: last", a.source+" is CONSUME_FROM_TIMESTAMP, without its time"+only)
			return
		}
		d.warn("start_from: the members' consumeTimestamp %s is read in the time zone of this machine (%s), as theirs is not told", at.value, t.Format("MST -07:00"))
		p.line(4, `start_from: {timestamp: "`+t.UTC().Format(time.RFC3339)+`"}`, at.source+only)
	default: // three deprecated ones mean last
		p.line(4, "start_from: last", a.source+only)
	}
}

func (d *draft) ordered() {
	a := d.agreed("order", d.facts.ask(wire.RunningOrderly, func(m *Member) string { return m.Order }))
	d.order = a.value
	switch a.value {
	case "":
		d.order = "none"
		if len(d.facts.Members) > 0 {
			d.warn("no member tells whether it keeps order, nor its strategy: hold order and allocation against the consumer's code")
		}
		d.page.line(4, "order: none", "not known, no member tells: queue if the consumer has a MessageListenerOrderly")
	case "none":
		d.page.line(4, "order: none", a.source)
	default:
		d.page.line(4, "order: "+a.value, a.source)
	}
}

// strategy takes the members' strategy: streamd refuses to divide otherwise than they do. Settings of a strategy are objects
// of the application, which nobody tells.
func (d *draft) strategy() {
	p := &d.page
	if d.broadcasting {
		return // nothing is divided
	}
	a := d.agreed("allocateMessageQueueStrategy", d.facts.ask("allocateMessageQueueStrategy", func(m *Member) string { return m.Strategy }))
	for i := range d.facts.Members {
		m := &d.facts.Members[i]
		if class := m.Told["allocateMessageQueueStrategy"]; class != "" && m.Strategy == "" && !m.Streamd {
			class, _, _ = strings.Cut(class, "@")
			d.warn("member %s divides queues by %s, a class of its application: streamd needs a strategy plugin that computes the same, or give the members one of RocketMQ's", m.ClientID, class)
		}
	}
	switch {
	case a.value == "":
		p.line(4, "allocation: {strategy: averagely}", "not known, no member tells: it has to be the other members' (RocketMQ's default is this)")
	case a.value == allocate.NameConfig:
		d.warn("members have a fixed list of queues each (AllocateMessageQueueByConfig): list those of this member under allocation.config.queues, and take them off the others")
		p.line(4, "allocation:", "")
		p.line(6, "strategy: config", a.source)
		p.line(6, "allow_uncovered: true", "what no member lists nobody handles")
		p.line(6, "config: {queues: []}", "- {topic: Orders, broker: broker-a, id: 0}; listed nowhere else")
	case a.value == allocate.NameMachineRoom:
		d.rooms(a)
	case a.value == allocate.NameMachineRoomNearby:
		d.warn("members divide by AllocateMachineRoomNearby, whose resolver of rooms is code of the application: hold allocation.config against it (docs/strategies.md)")
		p.line(4, "allocation:", "")
		p.line(6, "strategy: machine_room_nearby", a.source)
		p.line(6, `config: {inner: averagely, separator: "-"}`, "not told: the strategy within a room, and what ends the room in names of brokers and members")
	case slices.Contains(allocate.Names(), a.value):
		p.line(4, "allocation: {strategy: "+a.value+"}", a.source+d.assumed(a))
	default:
		d.warn("members divide queues by the plugin strategy %s: copy plugins: and allocation: from a member's config", a.value)
		p.line(4, "allocation: {strategy: averagely}", a.source+" is "+a.value+", of a plugin: copy it from a member's config")
	}
}

// assumed marks a strategy that no member named.
func (d *draft) assumed(a answer) string {
	for i := range d.facts.Members {
		if m := &d.facts.Members[i]; m.Strategy == a.value && (m.Streamd || m.Told["allocateMessageQueueStrategy"] != "") {
			return ""
		}
	}
	return "; Go members do not tell, and this is their default"
}

func (d *draft) rooms(a answer) {
	rooms := []string{}
	for i := range d.facts.Members {
		for _, q := range d.facts.Members[i].Queues {
			if room, _, ok := strings.Cut(q.BrokerName, "@"); ok && !slices.Contains(rooms, room) {
				rooms = append(rooms, room)
			}
		}
	}
	slices.Sort(rooms)
	said := "the rooms of the brokers that members own queues at"
	if len(rooms) == 0 {
		rooms, said = []string{"CHANGE-ME"}, "not told"
	}
	d.warn("members divide by AllocateMessageQueueByMachineRoom: hold allocation.config.rooms against its consumeridcs, which they do not tell")
	d.page.line(4, "allocation:", "")
	d.page.line(6, "strategy: machine_room", a.source)
	d.page.line(6, "allow_uncovered: true", "brokers of other rooms are read by nobody")
	d.page.line(6, "config: {rooms: "+list(rooms)+"}", said)
}

// members warns of what kinds of members mean for streamd, and takes settings of their clients.
func (d *draft) members(b *Broker) {
	f := d.facts
	if len(f.Members) == 0 {
		d.warn("no member is online: filters, model, order and strategy are not known; run this again while one is, or look them up in the consumer's code")
	}
	if wire.ConsumeType(f.ConsumeType) == wire.ConsumeActively {
		d.warn("the members pull by themselves (CONSUME_ACTIVELY, a pull consumer): they may divide queues by hand, and then streamd cannot share the group")
	}
	for i := range f.Members {
		m := &f.Members[i]
		if m.Pops || m.Told["clientRebalance"] == "false" && !m.Streamd {
			d.warn("member %s consumes by POP (clientRebalance=false, or mqadmin setConsumeMode): a broker divides messages for it, and streamd, which divides queues, cannot share the group with it", m.ClientID)
		}
	}
	if a := d.agreed("namespaceV2", f.told("namespaceV2")); a.value != "" && b.NamespaceV2 == "" && b.Namespace == "" {
		b.NamespaceV2 = a.value
	}
	if f.told("useHeartbeatV2").value == "true" {
		b.HeartbeatV2 = true
	}
	if a := f.told("useTLS"); a.value == "true" && b.TLS == nil {
		d.warn("the members speak TLS (%s) and this command did not: add tls to the broker", a.source)
	}
}

// identity tells what names the member.
func (d *draft) identity(p *page) {
	p.blank()
	if !d.broadcasting {
		p.off(0, `member: "${env:POD_NAME:-}"`, "name in client ids, as instanceName; left out: ip@pid#random")
		return
	}
	p.line(0, `member: "${env:POD_NAME:-`+d.facts.Group+`-1}"`, "its offsets are kept under this name: another one for each member, and the same over restarts")
}

func (d *draft) telemetry(p *page) {
	if a := d.facts.told("enableTrace"); a.value == "true" {
		p.line(0, "telemetry: {rocketmq_trace: true}", fmt.Sprintf("%s, RocketMQ's own message trace", a.source))
	}
}
