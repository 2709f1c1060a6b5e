package fromgroup

import (
	"fmt"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Draft writes the config of one more member of the group.
func (f *Facts) Draft(b Broker) *Draft {
	d := &draft{facts: f}
	d.stream()
	d.members(&b)
	p := &page{}
	p.note(0, fmt.Sprintf("A member of the group %s, by streamd init --from-group on %s: %s.", f.Group, f.Time.UTC().Format("2006-01-02 15:04 UTC"), f.people()))
	p.note(0, "Comments say where a value was read. Put your handler in below, then\n streamd validate -c FILE\n streamd run -c FILE\nand go on with docs/migration.md.")
	if len(d.warnings) > 0 {
		p.blank()
		p.note(0, "LOOK AT THIS BEFORE IT RUNS:")
		for _, w := range d.warnings {
			p.note(0, "- "+w)
		}
	}
	p.blank()
	p.cluster(&b)
	p.handler(true)
	p.text.WriteString(d.page.text.String())
	d.identity(p)
	p.rest()
	d.telemetry(p)
	return &Draft{Text: p.text.String(), Warnings: append([]string{}, d.warnings...)}
}

// people counts the members by language and version.
func (f *Facts) people() string {
	if len(f.Members) == 0 {
		return "no member is online"
	}
	var kinds []string
	counts := map[string]int{}
	for i := range f.Members {
		m := &f.Members[i]
		kind := m.Language + " " + m.Version
		if m.Streamd {
			kind = "streamd"
		}
		if counts[kind]++; counts[kind] == 1 {
			kinds = append(kinds, kind)
		}
	}
	for i, kind := range kinds {
		kinds[i] = number(counts[kind]) + " × " + kind
	}
	return "members online: " + strings.Join(kinds, ", ")
}

type draft struct {
	facts    *Facts
	page     page
	warnings []string

	broadcasting bool
	order        string
}

func (d *draft) warn(format string, args ...any) {
	d.warnings = append(d.warnings, fmt.Sprintf(format, args...))
}

// agreed warns of members that say otherwise.
func (d *draft) agreed(what string, a answer) answer {
	if a.unlike != "" {
		d.warn("members differ in %s: taken is %s, others have %s", what, a.value, a.unlike)
	}
	return a
}

func (d *draft) stream() {
	f, p := d.facts, &d.page
	d.warnings = append(d.warnings, f.Notes...)
	if err := wire.ValidateGroup(f.Group); err != nil {
		d.warn("streamd joins no group of this name: %v", err)
	}
	p.line(0, "streams:", "")
	p.line(2, "- name: "+scalar(f.Group), "in logs and metrics")
	p.line(4, "group: "+scalar(f.Group), "")
	p.line(4, "handler: handler", "")
	d.model()
	d.subscriptions()
	d.start()
	d.ordered()
	d.strategy()
	d.limits()
	d.retries()
	d.group()
}

func (d *draft) subscriptions() {
	f, p := d.facts, &d.page
	p.line(4, "subscribe:", "every member of the group must have the same")
	if len(f.Topics) == 0 {
		d.warn("no topic of the group is known: nobody is online and no offset is stored; name them with --topic")
		p.line(6, "- topic: CHANGE-ME", "no member is online, and the group has no stored offsets")
	}
	for i := range f.Topics {
		d.topic(&f.Topics[i])
	}
}

func (d *draft) topic(t *Topic) {
	f, p := d.facts, &d.page
	source := "the group has offsets in it"
	switch {
	case len(t.Filters) > 0:
		source = f.source(t)
	case t.Asked && !t.Offsets:
		source = "as asked for: the group has no offsets in it"
	}
	p.line(6, "- topic: "+scalar(t.Name), source)
	if len(t.Filters) == 0 {
		d.warn("the filter of topic %s is not known, since no member tells: as written every message is taken", t.Name)
		p.off(8, `tags: "a || b"`, "not known: look it up in the consumer's code (subscribe), or start it and run this again")
		return
	}
	first := t.Filters[0]
	switch first.Type {
	case wire.ExpressionTag:
		if words := first.words(); words != "all" {
			p.line(8, "tags: "+scalar(first.Expression), "")
		}
	case wire.ExpressionSQL92:
		p.line(8, "sql: "+scalar(first.Expression), "")
	default:
		d.warn("topic %s is filtered by %s, which streamd does not know: as written every message is taken", t.Name, first.words())
	}
	for _, other := range t.Filters[1:] {
		by := other.Source
		if len(other.Members) > 0 {
			by = strings.Join(other.Members, ", ")
		}
		d.warn("subscriptions to topic %s are unlike: taken is %q, and %s has %q; give all members the same first", t.Name, first.words(), by, other.words())
	}
	if len(t.Without) > 0 {
		d.warn("topic %s is not subscribed to by %s: members of one group must subscribe alike", t.Name, strings.Join(t.Without, ", "))
	}
}

func (f *Facts) source(t *Topic) string {
	first := t.Filters[0]
	tell := len(t.Without)
	for _, one := range t.Filters {
		tell += len(one.Members)
	}
	if len(first.Members) == 0 {
		return first.Source + " has it registered"
	}
	return f.who(first.Members, tell) + " (307)"
}
