package config

// broadcasting is the model in which every member handles every message.
const broadcasting = "broadcasting"

// Broadcasts tells that every member handles every message of the stream, and that this one keeps its offsets itself.
func (s *Stream) Broadcasts() bool { return s.Model == broadcasting }

// checkBroadcasting reports what contradicts model: broadcasting, or is missing for it.
func checkBroadcasting(root, s *node, ps *problems) {
	model, ok := s.str("model")
	if !ok || model.text != broadcasting {
		return
	}
	if name, ok := root.str("member"); !ok || name.text == "" {
		ps.add(model.pos, "member: NAME at the top, which stays the same over restarts",
			"model: broadcasting keeps its offsets on this machine under the member's name, and member is not set")
	}
	checkNoDeadLetters(s, model, ps)
	allocation := s.get("allocation")
	if allocation == nil || allocation.kind != mappingNode {
		return
	}
	for _, e := range allocation.entries {
		if !e.value.byDefault {
			ps.add(e.pos, "removing allocation, or model: clustering", "allocation.%s: with model: broadcasting nothing is divided, since every member has every queue", e.key)
		}
	}
}

// checkNoDeadLetters wants a choice that the default cannot make: no broker takes a failed message of a broadcasting member,
// so that it either holds its queue or is lost here.
func checkNoDeadLetters(s, model *node, ps *problems) {
	const choice = "on_exhausted: block, which holds the queue and tells, or on_exhausted: skip with accept_loss: true"
	end, ok := s.str("on_exhausted")
	switch {
	case !ok || end.byDefault:
		ps.add(model.pos, choice, "model: broadcasting has no dead letters, so that on_exhausted has to be written")
	case end.text == "dead_letter":
		ps.add(end.pos, choice, "on_exhausted: dead_letter needs model: clustering; broadcasting has no dead letters")
	}
	if down, ok := s.get("handler_down").str("then"); ok && down.text == "leave" && !down.byDefault {
		ps.add(down.pos, "then: hold", "handler_down.then: leave gives queues to other members, and with model: broadcasting they have them already")
	}
}

// lossless is the least surprising on_exhausted that loses nothing.
func lossless(s *node) string {
	if model, ok := s.str("model"); ok && model.text == broadcasting {
		return "block"
	}
	return "dead_letter"
}
