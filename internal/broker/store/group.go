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
	touched map[*queue]extent // bounds after the last change of this group
	values  map[string][]byte // of tables by their keys, the last one of each

	log     []byte // its messages, that go into a segment; the first one has a log offset of at
	at      int64
	segment int64 // where that segment begins

	failures int64               // of the store before this group
	ending   map[string]struct{} // schedule entries that it removes
	ended    int                 // how many of them there were; known when it is stored
}

func newGroup(db *pebble.DB, failures int64) *group {
	return &group{
		batch:   db.NewBatch(pebble.WithMaxRetainedSizeBytes(2 * maxGroup)),
		touched: make(map[*queue]extent), values: make(map[string][]byte), ending: make(map[string]struct{}), failures: failures,
	}
}

// An edit of a batch that is not applied yet cannot fail: it is memory, and MaxPending keeps it far below the 4 GiB at which
// Pebble gives up. The errors that Pebble returns here are always nil.

func (g *group) set(k, v []byte)        { _ = g.batch.Set(k, v, nil) }
func (g *group) remove(k []byte)        { _ = g.batch.Delete(k, nil) }
func (g *group) removeFrom(a, b []byte) { _ = g.batch.DeleteRange(a, b, nil) }

func (g *group) touch(q *queue) { g.touched[q] = extent{q.bounds, q.era} }

// message adds one message with all that belongs to it. What waits is with its key, and not only in a segment: it outlives what
// was stored with it, and goes when its time has come.
func (g *group) message(number uint32, topic string, p Position, r *Record) {
	size := len(r.Raw)
	outside := g.log != nil && r.Due <= 0 && !r.Half
	if outside {
		size = pointerSize
	}
	op := g.batch.SetDeferred(messageKeySize, size)
	putMessageKey(op.Key, number, p.QueueOffset, p.StoreMillis, r.TagHash)
	if outside {
		pointTo(p.LogOffset, r.Raw).put(op.Value)
	} else {
		copy(op.Value, r.Raw)
	}
	_ = op.Finish()
	if g.log != nil {
		g.log = append(g.log, r.Raw...)
	}
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

// end removes a schedule entry, and the message that waited with what leads to it. The run that says where the log ends stays.
func (g *group) end(e *Scheduled, logEnd int64) {
	waits := scheduleKey(e.Due, e.LogOffset)
	g.remove(waits)
	g.ending[string(waits)] = struct{}{}
	if e.Raw == nil || e.at.queue == 0 {
		return // There is no message, or the caller made the entry up.
	}
	key := make([]byte, messageKeySize)
	putMessageKey(key, e.at.queue, e.at.offset, e.entry.millis, e.entry.tagHash)
	_ = g.batch.DeleteSized(key, uint32(len(e.Raw)), nil) //nolint:gosec // a frame is far smaller
	for _, k := range e.Keys {
		index := make([]byte, indexKeySize)
		putIndexKey(index, hashOf(e.Topic, k), Position{LogOffset: e.LogOffset, StoreMillis: e.entry.millis})
		g.remove(index)
	}
	if e.alone && e.LogOffset+int64(len(e.Raw)) < logEnd {
		g.remove(logKey(e.LogOffset))
	}
}

// countEnded counts the schedule entries that are there to be removed: two may have ended the same one, a recall and a
// delivery. Everything that was submitted before is in db by now. One that cannot be read counts: the load of the next start
// counts anew.
func (g *group) countEnded(db *pebble.DB) {
	for k := range g.ending {
		if v, err := get(db, []byte(k)); v != nil || err != nil {
			g.ended++
		}
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
