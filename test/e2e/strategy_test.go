package e2e_test

import (
	"fmt"
	"slices"
	"testing"
)

// A strategy that answers wrongly, late, or dies: the verified share stays, nothing is lost, the log names the rule that
// was broken, and other streams go on.
func TestStrategy_fails(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	b := s.newBroker()
	spoiled := s.path("spoiled")
	rules := map[string][]string{
		"repeats": {"two owners"}, "forgets": {"no owner"}, "invents": {"Nowhere"}, "wavers": {"asked the same again"},
		"hangs": {"did not answer in time"}, "dies": {"strategist"},
	}
	good := s.witness("good", b, "")
	var all []*stream
	for name := range rules {
		st := s.witness(name, b, fmt.Sprintf(", allocation: {plugin: strategist-%s, use: %s, config: {spoiled: %q}}", name, name, spoiled))
		st.plugin += "}\n  - {name: strategist-" + name + fmt.Sprintf(", command: [%q]", built.strategist)
		all = append(all, st)
	}
	first := s.run(1)
	for _, st := range all {
		st.goesOn("before")
	}
	s.save(spoiled, "")
	second := s.run(2)
	for name, words := range rules {
		// Either the share is kept, or both members saw the same and a fallback divides the queues.
		first.says(append(words, `"stream":"`+name+`"`, "strategist-"+name+"/"+name, "streamd allocate try")...)
	}
	good.goesOn("meanwhile")
	for _, st := range all {
		st.goesOn("during")
		st.settles()
		st.unburned()
	}
	for _, st := range all {
		st.isOwned()
	}
	second.stop()
	first.stop()
}

// isOwned waits until `group status` tells that a queue has an owner.
func (s *stream) isOwned() {
	s.t.Helper()
	s.until("a queue of stream "+s.name+" has an owner", func() (bool, string) {
		g, said := s.groupStatusNow()
		return g != nil && slices.ContainsFunc(g.Queues, func(q queueStatus) bool {
			return q.Topic == s.topic() && !slices.Contains([]string{"unowned", "unknown"}, q.State)
		}), said
	})
}
