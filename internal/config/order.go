package config

import "time"

// checkOrder reports what contradicts a stream's order, or has no meaning with it. What defaults say is for all streams, so
// only what was written for this one has to fit.
func checkOrder(root, s *node, ps *problems) {
	order, ok := s.str("order")
	if !ok {
		return
	}
	retry, general := s.get("retry"), root.get("defaults").get("retry")
	ordered := order.text == "queue" || order.text == "key"
	if levels := retry.get("levels"); ordered && own(levels, general.get("levels")) {
		ps.add(levels.pos, "retry.backoff, which paces tries in place, or order: none",
			"retry.levels are the delays of messages that are sent back, and with order: %s (%s) none is", order.text, order.pos)
	}
	backoff := retry.get("backoff")
	if backoff == nil || backoff.kind != mappingNode {
		return
	}
	first, _ := backoff.str("first")
	most, _ := backoff.str("max")
	general = general.get("backoff")
	if own(first, general.get("first")) || own(most, general.get("max")) {
		checkAscent(first, most, ps)
	}
}

// own tells whether a value was written for a stream itself.
func own(n, general *node) bool {
	return n != nil && !n.byDefault && (general == nil || n.pos != general.pos)
}

func checkAscent(first, most *node, ps *problems) {
	if first == nil || most == nil {
		return
	}
	a, err := time.ParseDuration(first.text)
	b, err2 := time.ParseDuration(most.text)
	if err == nil && err2 == nil && a > b {
		ps.add(first.pos, "at most "+most.shown()+", or a longer max", "retry.backoff.first is %s, longer than retry.backoff.max, %s", first.shown(), most.shown())
	}
}
