package settle

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq"
)

// The bounds of the calls of one stream that are in flight. Every broker has its own, so that one that is silent holds back
// what is for it, and nothing else.
const (
	MaxCalls = 32  // to one broker
	MaxAll   = 256 // to all of them
)

// maxSilent bounds the bulkheads that are kept without calls because nobody answered: brokers are few, but a handler may name any
// topic for its outputs.
const maxSilent = 256

// call is one call of a job, and what came of it. While it is in flight it is its goroutine's.
type call struct {
	job     *Job
	step    Step
	to      string    // bulkhead
	outputs []*output // StepProduce: in the order in which they are to be stored

	outcome Outcome // 0: it was not made
	text    string
	answer  answer
}

// answer tells whether a broker said anything to a call.
type answer uint8

const (
	unasked  answer = iota // the call failed before it got so far, or was not made
	answered               // it did, whatever it said
	silent                 // it did not
)

func answerOf(err error) answer {
	var resp *rocketmq.ResponseError
	var unreachable *rocketmq.UnreachableError
	switch {
	case err == nil || errors.As(err, &resp):
		return answered
	case errors.As(err, &unreachable) || rocketmq.IsUnknownOutcome(err) || errors.Is(err, context.DeadlineExceeded):
		return silent
	default:
		return unasked
	}
}

// bulkhead is the calls to one broker; or those to one topic whose broker the client chooses among several, as it finds them
// to answer.
type bulkhead struct {
	to    string
	queue []*call // in the order in which they came
	calls int     // in flight
	// silent is how the last call ended when that was without an answer: then one call at a time asks whether there is one again, and
	// thousands that wait take none of what all brokers share.
	silent string
}

// room is how many calls may be sent now.
func (b *bulkhead) room() int {
	if b.silent != "" {
		return 1 - b.calls
	}
	return MaxCalls - b.calls
}

// idle tells that it has no calls.
func (b *bulkhead) idle() bool { return b.calls == 0 && len(b.queue) == 0 }

// bulkheads are those that have calls, and those that are silent: all that was tried there may be in a pause, to come again at once.
// One whose broker is gone for good stays, which costs nothing but its place among maxSilent.
type bulkheads struct {
	byName map[string]*bulkhead
	all    []*bulkhead // in turn
	turn   int
	calls  int // in flight, of all
}

func (bs *bulkheads) add(c *call) {
	b := bs.byName[c.to]
	if b == nil {
		if len(bs.all) >= maxSilent {
			bs.drop((*bulkhead).idle, 1) // the one that is known to be silent for longest
		}
		b = &bulkhead{to: c.to}
		if bs.byName == nil {
			bs.byName = make(map[string]*bulkhead)
		}
		bs.byName[c.to] = b
		bs.all = append(bs.all, b)
	}
	b.queue = append(b.queue, c)
}

// start sends what there is room for. No bulkhead is always the first to get what all share.
func (bs *bulkheads) start(send func(*call)) {
	bs.turn++
	for i := range bs.all {
		b := bs.all[(bs.turn+i)%len(bs.all)]
		n := max(0, min(len(b.queue), b.room(), MaxAll-bs.calls))
		for _, c := range b.queue[:n] {
			send(c)
		}
		b.queue = slices.Delete(b.queue, 0, n)
		b.calls += n
		bs.calls += n
	}
}

// ended takes note of the end of a call that was in flight.
func (bs *bulkheads) ended(c *call) {
	b := bs.byName[c.to]
	b.calls--
	bs.calls--
	switch c.answer {
	case answered:
		b.silent = ""
	case silent:
		b.silent = c.text
	case unasked:
	}
	bs.forget()
}

// answers takes note of brokers that are back: what waits for them does not wait for a call that was made before. One of several that
// the client chooses among may be one of them.
func (bs *bulkheads) answers(back []string) {
	for _, b := range bs.all {
		if slices.Contains(back, b.to) || strings.HasPrefix(b.to, severalBrokers) {
			b.silent = ""
		}
	}
	bs.forget()
}

// forget drops what has no calls, and answered when it was last asked.
func (bs *bulkheads) forget() {
	bs.drop(func(b *bulkhead) bool { return b.idle() && b.silent == "" }, len(bs.all))
}

// drop drops at most so many that match, the oldest first.
func (bs *bulkheads) drop(match func(*bulkhead) bool, most int) {
	bs.all = slices.DeleteFunc(bs.all, func(b *bulkhead) bool {
		if most <= 0 || !match(b) {
			return false
		}
		most--
		delete(bs.byName, b.to)
		return true
	})
}

// queued tells that calls wait for room.
func (bs *bulkheads) queued() bool {
	return slices.ContainsFunc(bs.all, func(b *bulkhead) bool { return len(b.queue) > 0 })
}

// remove takes out the calls that match and are not in flight.
func (bs *bulkheads) remove(match func(*call) bool) (removed []*call) {
	for _, b := range bs.all {
		b.queue = slices.DeleteFunc(b.queue, func(c *call) bool {
			if !match(c) {
				return false
			}
			removed = append(removed, c)
			return true
		})
	}
	bs.forget()
	return removed
}

// stuck is the job that has waited longest for a broker that is silent, and how that was noticed.
func (bs *bulkheads) stuck() (oldest *Job, why string) {
	for _, b := range bs.all {
		if b.silent == "" || len(b.queue) == 0 {
			continue
		}
		if j := b.queue[0].job; oldest == nil || j.since.Before(oldest.since) {
			oldest, why = j, b.silent
		}
	}
	return oldest, why
}

// begin queues the calls of a job's step.
func (s *Settler) begin(j *Job) {
	switch j.step.Kind {
	case StepProduce:
		s.check(j)
		s.progress(j)
	case StepSendBack:
		s.enqueue(&call{job: j, step: j.step, to: j.first().Queue().Broker})
	default:
		s.enqueue(&call{job: j, step: j.step, to: s.placeOf(j.step.Topic, "")})
	}
}

func (s *Settler) enqueue(c *call) {
	c.job.calls++
	s.bulkheads.add(c)
}

// severalBrokers begins the name of what goes to a topic whose broker the client chooses. No broker is named so: those have no spaces.
const severalBrokers = "topic "

// placeOf is where a message is stored as far as that is known before: a broker, or the one that the client will choose.
func (s *Settler) placeOf(topic, shardingKey string) string {
	if broker := s.cfg.Broker.StoredBy(topic, shardingKey); broker != "" {
		return broker
	}
	return severalBrokers + topic
}

// after acts on the end of a call, or on one that is not made any more.
func (s *Settler) after(c *call) {
	j := c.job
	j.calls--
	if c.text != "" {
		s.count(func(n *Counters) { n.Refusals++ })
	}
	switch {
	case c.step.Kind == StepProduce:
		s.produced(c)
	case c.outcome == OutcomeDone:
		s.counted(j)
		j.step = Step{Kind: StepSettle}
		s.settle(j) // also when the ownership has ended: it is durable now, which is to be counted
	case c.outcome == 0:
		s.drop(j)
	default:
		s.again(j, c.outcome, c.text)
	}
}

// again has a job tried again whose call failed.
func (s *Settler) again(j *Job, o Outcome, text string) {
	step := s.cfg.Policy().Next(s.facts(j), j.step, o, text)
	if step.Off {
		s.off = s.cfg.Now().Add(offFor)
	}
	if step.Kind == j.step.Kind {
		j.tries++
	} else {
		j.tries = 0
	}
	if j.tries == 1 || j.tries%20 == 0 {
		s.cfg.Logger.Warn("verdict is not durable yet, it is tried again", "queue", j.first().Queue().String(), "msg_id", j.first().Identity(), "tries", j.tries, "error", text)
	}
	s.next(j, step)
}
