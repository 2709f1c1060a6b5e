package allocate

// Decision is what a member does for one topic now.
type Decision struct {
	// Mine are the queues to own, sorted. The engine applies them whatever the other fields say.
	Mine []Queue
	// Owner is the verified answer to Input, one entry per queue. Nil when Kept.
	Owner []int32
	// Input is the question; its zero value when the view was unusable and nothing was asked.
	Input Input
	// Kept means that no answer was accepted: Mine is what was verified last, less the queues known to have vanished.
	Kept bool
	// Fallback names the strategy that computed instead of the configured one; empty when the configured one did.
	Fallback string
	// Reason says why a share was kept or a fallback used; nil otherwise. RuleOf classifies it.
	Reason error
	// Uncovered are the queues that nobody owns by the design of a partial strategy. To be shown.
	Uncovered []Queue
	// Digest is to be published (307). It has no Input when nothing was asked.
	Digest Digest
}

// Reproduce returns the command that asks the strategy the same again; empty when nothing was asked.
func (d Decision) Reproduce() string {
	if len(d.Input.Queues) == 0 {
		return ""
	}
	return Reproduce(d.Digest.Identity, d.Input)
}
