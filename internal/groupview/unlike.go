package groupview

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// unlike notes the topics that members subscribe to in different ways, as each of them told (307).
func (r *reader) unlike() {
	filters := map[string]map[string][]string{} // by topic, then filter: client ids
	told := 0
	for _, id := range slices.Sorted(maps.Keys(r.infos)) {
		info := r.infos[id]
		if len(info.Subscriptions) == 0 {
			continue // says nothing of them
		}
		told++
		for _, data := range info.Subscriptions {
			if wire.IsRetryTopic(data.Topic) {
				continue
			}
			s := rocketmq.SubscriptionOf(data)
			if filters[s.Topic] == nil {
				filters[s.Topic] = map[string][]string{}
			}
			by := alike(filters[s.Topic], &s)
			filters[s.Topic][by] = append(filters[s.Topic][by], id)
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(filters)) {
		var parts []string
		subscribers := 0
		for _, by := range slices.Sorted(maps.Keys(filters[topic])) {
			parts = append(parts, by+" ("+strings.Join(filters[topic][by], ", ")+")")
			subscribers += len(filters[topic][by])
		}
		if subscribers < told {
			parts = append(parts, fmt.Sprintf("not at all (%s)", strings.Join(r.without(topic), ", ")))
		}
		if len(parts) > 1 {
			r.note("members subscribe unlike to topic %s: %s; give every member the same subscriptions, or a group of its own", topic, strings.Join(parts, "; "))
		}
	}
}

// alike is the filter among those seen that lets the same messages pass as s does, or else its own.
func alike(seen map[string][]string, s *rocketmq.Subscription) string {
	for by := range seen {
		kind, expression, _ := strings.Cut(by, " ")
		other := rocketmq.Subscription{Topic: s.Topic, Expression: expression, Type: rocketmq.FilterTag}
		switch {
		case by == "all":
			other.Expression = wire.AllTags
		case kind != "tags":
			other.Type = rocketmq.FilterType(kind)
		}
		if s.SameFilter(&other) {
			return by
		}
	}
	return s.Filter()
}

// without lists the members that told their subscriptions, without this topic among them.
func (r *reader) without(topic string) (ids []string) {
	for _, id := range slices.Sorted(maps.Keys(r.infos)) {
		subs := r.infos[id].Subscriptions
		if len(subs) > 0 && !slices.ContainsFunc(subs, func(d wire.SubscriptionData) bool { return d.Topic == topic }) {
			ids = append(ids, id)
		}
	}
	return ids
}
