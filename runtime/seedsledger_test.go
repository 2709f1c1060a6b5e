package runtime_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
	"github.com/streamd/streamd/sdk"
)

// outTopic takes what the handlers of a story emit.
const outTopic = "Out"

// retriesFrom is where the retry topic of a story begins: so an offset tells whether it is one of a retry.
const retriesFrom = 1 << 20

// ledger keeps account of a story: of each place where a message stands, and of what is stored for it. It judges each
// delivery and each commit when it happens by what docs/order.md, docs/operating.md and promise 2 of the README say.
// It is safe for concurrent use: handlers and the engine's calls tell it what they do.
type ledger struct {
	t       *testing.T
	cluster *clustertest.Cluster
	order   runtime.Order
	exact   bool // nothing happens that may repeat a message that is settled

	mu       sync.Mutex
	put      []*entry // by number, which is the body
	strands  map[string]*strandLedger
	spots    map[spot]*place
	marks    map[sdk.Queue]int64 // up to where commits have been held against what is settled
	returned map[string]int      // by body: stored again, for a retry or as a dead letter
	claimed  map[string]int      // of these, how many a committed place was settled by
	outputs  map[string]int      // by body
	epochs   map[string]*epoch   // by member and queue: since it asked last where to begin
	lost     map[string]int      // by body: calls that stored and whose answers were lost

	begun, repeated, retried, commits int
}

// entry is one message.
type entry struct {
	number int
	at     spot // where its producer put it
	strand string
	acks   int // answers that the engine got
}

// spot is a place in a queue. A retry has one of its own.
type spot struct {
	queue  sdk.Queue
	offset int64
}

// place is what happened to the message of a spot.
type place struct {
	runs  []*run
	acked bool
}

// run is one delivery.
type run struct {
	e          *entry
	at         spot
	member     string
	generation uint64
	batch      uint64
	epoch      *epoch
	ended      <-chan struct{} // the process
	over       bool            // the handler has returned
	answer     frame.VerdictKind
	answered   time.Time
}

// epoch is the time from a member's question where to begin a queue to its next one.
type epoch struct {
	member string
	start  int64
	lost   bool // a process of the member ended with what it had
}

// running tells that something may come of the run yet.
func (r *run) running() bool {
	select {
	case <-r.ended:
		return false
	default:
		return !r.over
	}
}

func (p *place) last() *run {
	if len(p.runs) == 0 {
		return nil
	}
	return p.runs[len(p.runs)-1]
}

// strandLedger is the messages that must stay in order: of a queue, or of a key in one.
type strandLedger struct {
	entries []*entry // by offset
	settled int      // so many of the first are known to be settled
	latest  *entry   // the last that was begun
	running []*run
}

func newLedger(t *testing.T, c *clustertest.Cluster, order runtime.Order) *ledger {
	t.Helper()
	return &ledger{
		t: t, cluster: c, order: order, strands: map[string]*strandLedger{}, spots: map[spot]*place{}, marks: map[sdk.Queue]int64{},
		returned: map[string]int{}, claimed: map[string]int{}, outputs: map[string]int{}, lost: map[string]int{}, epochs: map[string]*epoch{},
	}
}

func (l *ledger) ordered() bool { return l.order != runtime.OrderNone }

func (e *entry) body() string { return strconv.Itoa(e.number) }

// parts are the outputs that an ack of the message carries, and keyed tells whether they have a sharding key.
func (e *entry) parts() int  { return e.number % 4 }
func (e *entry) keyed() bool { return e.number%8 < 6 }

func (e *entry) part(k int) string { return fmt.Sprintf("%d/%d", e.number, k) }

// answer is an ack with the outputs of the message.
func (e *entry) answer() (a clustertest.Answer) {
	for k := range e.parts() {
		o := frame.Record{Body: []byte(e.part(k))}
		if k%2 == 0 {
			o.Topic = outTopic // else by the stream's outputs.topic
		}
		key := ""
		if e.keyed() {
			key = e.strand
		}
		a.Outputs, a.Sharding = append(a.Outputs, o), append(a.Sharding, key)
	}
	return a
}

// produce puts a message into a queue.
func (l *ledger) produce(q sdk.Queue, m rocketmq.OutgoingMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &entry{number: len(l.put), strand: fmt.Sprint("q", q.ID)}
	if l.order != runtime.OrderQueue {
		key := m.Properties["__SHARDINGKEY"]
		if key == "" && len(m.Keys) > 0 {
			key = m.Keys[0]
		}
		e.strand += "/" + key
	}
	m.Body = []byte(e.body())
	e.at = spot{q, l.cluster.Put(q, m)}
	l.put = append(l.put, e)
	st := l.strands[e.strand]
	if st == nil {
		st = &strandLedger{}
		l.strands[e.strand] = st
	}
	st.entries = append(st.entries, e)
	l.place(e.at)
}

func (l *ledger) place(at spot) *place {
	p := l.spots[at]
	if p == nil {
		p = &place{}
		l.spots[at] = p
	}
	return p
}

func (l *ledger) entry(body string) *entry {
	n, err := strconv.Atoi(body)
	if err != nil || n < 0 || n >= len(l.put) {
		l.t.Errorf("message %q was never put", body)
		return l.put[0]
	}
	return l.put[n]
}

// spotOf is where a delivered message stands: its own queue, or the retry topic's.
func (l *ledger) spotOf(e *entry, rec clustertest.Record) spot {
	if rec.Offset < retriesFrom {
		return e.at
	}
	return spot{clustertest.Queue(wire.RetryTopic(group), int(rec.QueueID)), int64(rec.Offset)} //nolint:gosec // small
}

// begin is told of a delivery when the handler begins it.
func (l *ledger) begin(member string, rec clustertest.Record) *run {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(rec.Body)
	r := &run{e: e, at: l.spotOf(e, rec), member: member, generation: rec.Generation, batch: rec.Batch, ended: rec.Ended}
	r.epoch = l.epochs[fmt.Sprint(member, r.at.queue)]
	if !r.running() {
		return r // its process has just ended: nothing comes of it
	}
	l.begun++
	p := l.place(r.at)
	l.again(r, p)
	p.runs = append(p.runs, r)
	if !l.ordered() {
		return r
	}
	st := l.strands[e.strand]
	l.inOrder(st, r)
	st.running, st.latest = append(st.running, r), e
	if owner := l.cluster.LockOwner(group, e.at.queue); owner != member {
		l.t.Errorf("%s begins offset %d of %s, whose lock is %q's", member, e.at.offset, e.at.queue, owner)
	}
	if at := l.cluster.Committed(group, e.at.queue); at > e.at.offset {
		l.t.Errorf("%s begins offset %d of %s, which is committed to %d", member, e.at.offset, e.at.queue, at)
	}
	return r
}

// again judges a delivery of what was delivered before: a failed one is tried again, one that ran in a process that ended
// comes again, and what is settled never does where nothing happens that may repeat it.
func (l *ledger) again(r *run, p *place) {
	before := p.last()
	switch {
	case before == nil:
		return
	case before.answer == frame.VerdictRetry && l.ordered():
		l.retried++
		return
	case before.answer == 0 && !before.running():
		return // what ran in it
	}
	l.repeated++
	switch {
	case !l.exact || l.behindGap(r, before):
	case before.running():
		l.t.Errorf("offset %d of %s is begun by %s while %s has it", r.at.offset, r.at.queue, r.member, before.member)
	default:
		l.t.Errorf("offset %d of %s comes again to %s, although %s answered it with verdict %d", r.at.offset, r.at.queue, r.member, before.member, before.answer)
	}
}

// behindGap tells that a message was handled before an earlier one of its queue was, and the queue has begun anew since: an
// offset cannot say "all but this one". Gaps are what waited behind its key (docs/order.md), and what came back from a process
// that ended.
func (l *ledger) behindGap(r *run, before *run) bool {
	if before.epoch == nil || before.epoch == r.epoch || l.order != runtime.OrderKey && !before.epoch.lost {
		return false
	}
	for o := before.epoch.start; o < r.at.offset; o++ {
		if !slices.ContainsFunc(l.place(spot{r.at.queue, o}).runs, func(g *run) bool {
			return g.epoch == before.epoch && l.ends(g.answer) && !g.answered.After(before.answered)
		}) {
			return true
		}
	}
	return false
}

// ends tells that a verdict is the last of a message at its place: a failed one is tried again there only with an order.
func (l *ledger) ends(v frame.VerdictKind) bool {
	return v != 0 && (v != frame.VerdictRetry || !l.ordered())
}

// inOrder judges a delivery by the earlier messages of its strand: each is settled, or acked just before in the same batch,
// and none runs.
func (l *ledger) inOrder(st *strandLedger, r *run) {
	st.running = slices.DeleteFunc(st.running, func(o *run) bool { return !o.running() })
	for _, o := range st.running {
		l.t.Errorf("strand %s: %s begins offset %d while %s is at %d", r.e.strand, r.member, r.at.offset, o.member, o.at.offset)
	}
	for st.settled < len(st.entries) && l.durable(st.entries[st.settled]) {
		st.settled++
	}
	for _, e := range st.entries[min(st.settled, len(st.entries)):] {
		if e.at.offset >= r.at.offset {
			break
		}
		last := l.spots[e.at].last()
		follows := last != nil && last.answer == frame.VerdictAck && last.member == r.member && last.generation == r.generation && last.batch == r.batch
		if !follows && !l.durable(e) {
			l.t.Errorf("strand %s: %s begins offset %d before %d is settled", r.e.strand, r.member, r.at.offset, e.at.offset)
		}
	}
	if e := st.latest; e != nil && e.at.offset < r.at.offset && l.returned[e.body()] == 0 && l.spots[e.at].last().answer != frame.VerdictAck {
		l.t.Errorf("strand %s: %s begins offset %d, although the last delivery of %d was not acked", r.e.strand, r.member, r.at.offset, e.at.offset)
	}
}

// durable tells that a message is settled: acked with its outputs stored, or stored again.
func (l *ledger) durable(e *entry) bool {
	return l.returned[e.body()] > 0 || l.place(e.at).acked && l.emitted(e)
}

func (l *ledger) emitted(e *entry) bool {
	for k := range e.parts() {
		if l.outputs[e.part(k)] == 0 {
			return false
		}
	}
	return true
}

// returns is told that the handler has returned from a run.
func (l *ledger) returns(r *run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.over = true
}

// told is told of an answer that has reached the engine.
func (l *ledger) told(member string, rec clustertest.Record, a clustertest.Answer) {
	if a.Verdict.Kind == frame.VerdictUntouched {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(rec.Body)
	p := l.place(l.spotOf(e, rec))
	i := slices.IndexFunc(p.runs, func(r *run) bool {
		return r.member == member && r.generation == rec.Generation && r.batch == rec.Batch
	})
	if i < 0 {
		return // its process had ended before it began
	}
	r := p.runs[i]
	r.answer, r.answered = max(a.Verdict.Kind, frame.VerdictAck), time.Now()
	if r.answer == frame.VerdictAck {
		p.acked = true
		e.acks++
	}
}

// stored is told of a message that the cluster has stored for the engine; lost: the engine does not hear of it.
func (l *ledger) stored(topic, body string, lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lost {
		l.lost[body]++
	}
	if topic == outTopic {
		l.outputs[body]++
		return
	}
	l.returned[body]++
}

// commit is told of a commit before it is stored: it passes nothing that is not settled.
func (l *ledger) commit(q sdk.Queue, offset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commits++
	if l.marks[q] >= offset {
		return
	}
	for _, m := range l.cluster.Messages(q.Topic) {
		if m.QueueID != q.ID || m.QueueOffset < l.marks[q] || m.QueueOffset >= offset {
			continue
		}
		e := l.entry(string(m.Body))
		p := l.place(spot{q, m.QueueOffset})
		if p.acked && l.emitted(e) {
			continue
		}
		if l.claimed[e.body()]++; l.claimed[e.body()] > l.returned[e.body()] {
			l.t.Errorf("%s is committed to %d, but what stands at %d is not settled: acked %t, outputs stored %t, stored again %d times",
				q, offset, m.QueueOffset, p.acked, l.emitted(e), l.returned[e.body()])
		}
	}
	l.marks[q] = offset
}

// starts is told where a member begins a queue.
func (l *ledger) starts(member string, q sdk.Queue, offset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epochs[fmt.Sprint(member, q)] = &epoch{member: member, start: offset}
}

// ended is told that a process of a member ends with what it has.
func (l *ledger) ended(member string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.epochs {
		e.lost = e.lost || e.member == member
	}
}

// end holds when all is calm: nothing is lost, and outputs are in order and no more than they may be.
func (l *ledger) end() {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	dead := map[string]bool{}
	for _, m := range l.cluster.Messages(wire.DLQTopic(group)) {
		dead[string(m.Body)] = true
	}
	for _, e := range l.put {
		switch {
		case dead[e.body()]:
		case e.acks == 0:
			l.t.Errorf("message %d is lost", e.number)
		case !l.emitted(e):
			l.t.Errorf("outputs of message %d are lost", e.number)
		}
		for k := range e.parts() {
			if n, most := l.outputs[e.part(k)], e.acks+l.lost[e.part(k)]; n > most {
				l.t.Errorf("output %s is stored %d times, for %d acks and lost answers", e.part(k), n, most)
			}
		}
	}
	l.outputsInOrder()
}

// outputsInOrder judges the first of each output with a sharding key: those of a message are stored in the order in which they
// were emitted, and with an order those of a strand in the order of its messages.
func (l *ledger) outputsInOrder() {
	l.t.Helper()
	seen := map[string]bool{}
	latest := map[string]*entry{}
	for _, m := range l.cluster.Messages(outTopic) {
		body := string(m.Body)
		if seen[body] {
			continue
		}
		seen[body] = true
		number, part, _ := strings.Cut(body, "/")
		e := l.entry(number)
		if !e.keyed() || l.returned[number] > 0 { // after a reset it may be acked, though it was dead-lettered before
			continue
		}
		if k, _ := strconv.Atoi(part); k > 0 && !seen[e.part(k-1)] {
			l.t.Errorf("output %s is stored before the one that was emitted before it", body)
		}
		if before := latest[e.strand]; l.ordered() && before != nil && before.number > e.number {
			l.t.Errorf("strand %s: output %s is stored after one of the later message %d", e.strand, body, before.number)
		}
		latest[e.strand] = e
	}
}
