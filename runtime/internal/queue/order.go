package queue

import (
	"bytes"
	"time"
)

// Order says which messages of a queue bind each other. It is fixed for the length of an ownership.
type Order uint8

// The orders.
const (
	OrderNone  Order = iota
	OrderQueue       // all messages of the queue
	OrderKey         // those of one key; see Delivery.OrderKey
)

// Ordered tells whether messages of the queue bind each other.
func (o *Ownership) Ordered() bool { return o.Order != OrderNone }

// OrderKey is what binds a message in a queue that is ordered by key: the key that its producer chose the queue by
// (__SHARDINGKEY), else the first of its keys. Empty: it has neither, and is bound to the others of the queue that have none.
func (d *Delivery) OrderKey() []byte {
	if key := d.Props.ShardingKey(); len(key) > 0 {
		return key
	}
	keys := bytes.TrimLeft(d.Props.Keys(), " ")
	if end := bytes.IndexByte(keys, ' '); end >= 0 {
		keys = keys[:end]
	}
	return keys
}

// Extend sets until when the broker's lock is known to hold. lapsed tells that somebody has been told that it was over.
func (o *Ownership) Extend(until time.Time) (lapsed bool) {
	o.lease.Store(&until)
	return o.lapsed.Swap(false)
}

// Elapsed is the time from then to now by the clock that has gone on further. A host that was suspended stops the one that Go
// measures time with, while the broker's lock runs on; a wall clock that is set forward ends a lease too early at worst.
func Elapsed(now, then time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}

// LeaseOver tells that the broker's lock of the queue may be somebody else's by now, so that nothing of it may start: also
// when this process stood still for so long that nobody here has noticed yet. A queue without a lock never is.
func (o *Ownership) LeaseOver(now time.Time) bool {
	until := o.lease.Load()
	if until == nil || Elapsed(now, *until) < 0 {
		return false
	}
	o.lapsed.Store(true)
	return true
}
