package store

import (
	"github.com/cockroachdb/pebble/v2"
)

// maxGroup is how many bytes of messages a group takes before the next one is begun.
const maxGroup = 4 << 20

// group is the changes that are stored by one batch and share one synchronization.
type group struct {
	batch   *pebble.Batch
	bytes   int64
	done    []func(error)     // guarded by the Store's mutex
	early   bool              // the submitters were told that the disk is full; guarded likewise
	touched map[*queue]bounds // bounds after the last change of this group
	values  map[string][]byte // of tables by their keys, the last one of each
}

func newGroup(db *pebble.DB) *group {
	return &group{batch: db.NewBatch(pebble.WithMaxRetainedSizeBytes(2 * maxGroup)), touched: make(map[*queue]bounds), values: make(map[string][]byte)}
}

// Errors of a batch that is not indexed come from its size alone, which maxGroup bounds.

// An edit of a batch that is not applied yet cannot fail: it is memory, and MaxPending keeps it far below the 4 GiB at which
// Pebble gives up. The errors that Pebble returns here are always nil.

func (g *group) set(k, v []byte)        { _ = g.batch.Set(k, v, nil) }
func (g *group) remove(k []byte)        { _ = g.batch.Delete(k, nil) }
func (g *group) removeFrom(a, b []byte) { _ = g.batch.DeleteRange(a, b, nil) }

func (g *group) touch(q *queue) { g.touched[q] = q.bounds }

// message adds one message with all that belongs to it.
func (g *group) message(number uint32, topic string, p Position, r *Record) {
	op := g.batch.SetDeferred(messageKeySize, len(r.Raw))
	putMessageKey(op.Key, number, p.QueueOffset, p.StoreMillis, r.TagHash)
	copy(op.Value, r.Raw)
	_ = op.Finish()
	at := place{number, p.QueueOffset}
	for _, key := range r.Keys {
		op := g.batch.SetDeferred(indexKeySize, placeSize)
		putIndexKey(op.Key, hashOf(topic, key), p)
		at.put(op.Value)
		_ = op.Finish()
	}
	if r.Due > 0 {
		g.set(scheduleKey(r.Due, p.LogOffset), at.append(nil))
	}
	if r.Half {
		g.set(halfKey(p.LogOffset), at.append(nil))
	}
}

// add adds the rest of a change.
func (g *group) add(c *Change) {
	for _, e := range c.Unschedule {
		g.remove(scheduleKey(e.Due, e.LogOffset))
	}
	for _, offset := range c.EndHalves {
		g.remove(halfKey(offset))
	}
}

// seal adds the bounds of the queues that were changed, and the values. These come last, so that a group which waits for a
// disk that takes nothing does not grow with each offset that is committed again.
func (g *group) seal() {
	for k, v := range g.values {
		if v == nil {
			g.remove([]byte(k))
		} else {
			g.set([]byte(k), v)
		}
	}
	for q, b := range g.touched {
		g.set(queueKey(q.topic, q.id), b.append(order.AppendUint32(nil, q.number)))
	}
}
