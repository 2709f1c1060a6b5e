// Package allocatetest is the property suite for allocation strategies, first-party or of a plugin's author, and the
// table of what RocketMQ's own strategies answer.
//
// An author's whole test:
//
//	func TestNearest(t *testing.T) {
//		allocatetest.Run(t, allocatetest.Suite{New: func() allocate.Strategy { return allocate.FromMember(nearest{}) }})
//	}
package allocatetest
