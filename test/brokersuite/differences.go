package brokersuite

import "slices"

// Difference is a way in which the embedded broker is meant to answer otherwise than RocketMQ 5.3.3.
type Difference struct {
	ID     string   // as docs/embedded-broker.md names it
	Reason string   // the same words as there
	Steps  []string // "scenario/step"
}

// Differences are all of them. What the embedded broker answers in their steps lies in testdata/embedded.
func Differences() []Difference {
	return slices.Concat(requestDifferences(), sendDifferences(), filterDifferences(), adminDifferences(), nameServerDifferences())
}
