package fromgroup

import (
	"slices"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq"
)

// filters gives each topic the filters of the members, and of brokers where no member tells.
func (r *reader) filters() {
	for i := range r.out.Members {
		for _, s := range r.out.Members[i].subscriptions {
			r.topic(s.Topic)
		}
	}
	slices.SortFunc(r.out.Topics, func(a, b Topic) int { return strings.Compare(a.Name, b.Name) })
	for i := range r.out.Topics {
		t := &r.out.Topics[i]
		r.ofMembers(t)
		for _, h := range r.held {
			if h.Topic == t.Name {
				t.add(&h.Subscription, h.broker, "")
			}
		}
		slices.SortStableFunc(t.Filters, func(a, b Filter) int { return len(b.Members) - len(a.Members) })
	}
	r.forsaken()
}

// forsaken leaves out topics that the group has offsets in and no member subscribes to any more: a member that did would be
// unlike the others.
func (r *reader) forsaken() {
	filtered := func(t Topic) bool { return len(t.Filters) > 0 }
	if !slices.ContainsFunc(r.out.Topics, filtered) {
		return
	}
	r.out.Topics = slices.DeleteFunc(r.out.Topics, func(t Topic) bool {
		if filtered(t) || t.Asked {
			return false
		}
		r.note("the group has offsets in topic %s, and no member subscribes to it: it is left out", t.Name)
		return true
	})
}

func (r *reader) ofMembers(t *Topic) {
	for i := range r.out.Members {
		m := &r.out.Members[i]
		if len(m.subscriptions) == 0 {
			continue // says nothing of them
		}
		at := slices.IndexFunc(m.subscriptions, func(s rocketmq.Subscription) bool { return s.Topic == t.Name })
		if at < 0 {
			t.Without = append(t.Without, m.ClientID)
			continue
		}
		t.add(&m.subscriptions[at], "", m.ClientID)
	}
}

// add enters a filter, once for all that let the same messages pass.
func (t *Topic) add(s *rocketmq.Subscription, source, member string) {
	for i := range t.Filters {
		f := &t.Filters[i]
		if o := f.subscription(t.Name); s.SameFilter(&o) {
			if member != "" {
				f.Members = append(f.Members, member)
			}
			return
		}
	}
	f := Filter{Expression: s.Expression, Type: string(s.Type), Source: source, Members: []string{}}
	if member != "" {
		f.Members = append(f.Members, member)
	}
	t.Filters = append(t.Filters, f)
}

func (f *Filter) subscription(topic string) rocketmq.Subscription {
	return rocketmq.Subscription{Topic: topic, Expression: f.Expression, Type: rocketmq.FilterType(f.Type)}
}

// words is the filter for people.
func (f *Filter) words() string {
	s := f.subscription("")
	return s.Filter()
}
