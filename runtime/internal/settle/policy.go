package settle

import (
	"fmt"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Exhausted says what happens to a message whose retries are used up.
type Exhausted uint8

// What on_exhausted may be.
const (
	ExhaustedDeadLetter Exhausted = iota
	ExhaustedBlock                // the message stays and is tried in place until the operator acts
	ExhaustedSkip                 // the message is given up: the operator accepted the loss
)

// Policy is a stream's retry policy. A reload may replace it.
type Policy struct {
	Group       string
	MaxRetries  int // as RocketMQ counts: 16 = 17 deliveries, 0 = the first failure is the last
	OnExhausted Exhausted
	// Levels are the broker's delay levels, ascending; level 1 is Levels[0].
	Levels []time.Duration
	// OutputTopic is where an output without a topic goes; empty = such an output is the handler's mistake.
	OutputTopic string
	BlockPause  time.Duration // between tries of a blocked message
	// InPlace tells that every failed message is tried again in place and none is sent back. Those of ordered queues are,
	// whatever this says.
	InPlace bool
	// NoDeadLetters tells that no broker takes what is rejected: it goes the way of a message whose retries are used up.
	NoDeadLetters bool
	Backoff       Backoff // paces tries in place
	// SendBackFrom is until when messages are tried in place though nothing binds them any more; zero = they never are. Brokers
	// from 5.1.1 on dead-letter what goes to the retry topic of a group that holds a queue lock (consumer-semantics.md 6.4).
	SendBackFrom time.Time
}

// DefaultLevels returns RocketMQ's 18 delay levels (messageDelayLevel, consumer-semantics.md 8.3).
func DefaultLevels() []time.Duration {
	const s, m, h = time.Second, time.Minute, time.Hour
	return []time.Duration{s, 5 * s, 10 * s, 30 * s, m, 2 * m, 3 * m, 4 * m, 5 * m, 6 * m, 7 * m, 8 * m, 9 * m, 10 * m, 20 * m, 30 * m, h, 2 * h}
}

// Level is the smallest delay level of at least d, the largest when there is none, 0 (the broker's own 3 + attempts) for
// no wish.
func (p *Policy) Level(d time.Duration) int {
	if d <= 0 || len(p.Levels) == 0 {
		return 0
	}
	for i, l := range p.Levels {
		if l >= d {
			return i + 1
		}
	}
	return len(p.Levels)
}

// StepKind is one thing to do for a message.
type StepKind uint8

// The steps.
const (
	StepSettle   StepKind = iota + 1 // durable: settle it in the window
	StepSkip                         // settle it; the operator accepted the loss
	StepProduce                      // store its outputs
	StepSendBack                     // code 36 with Level
	StepResend                       // 310 to Topic: the broker no longer has the original, or takes no retries
	StepAgain                        // give it to the handler again, in place, after Wait
)

// Step is what to do next for a message, after Wait.
type Step struct {
	Kind  StepKind
	Level int
	Topic string
	Wait  time.Duration
	Why   string // for status: why it waits
	Off   bool   // the retry topic turned out to take nothing
	// Blocked tells that the retries are used up and on_exhausted holds the message: StepAgain only.
	Blocked bool
}

// Facts are what a plan decides by.
type Facts struct {
	Verdict  frame.Verdict
	Attempts int // counted so far, this one included
	Outputs  bool
	RetryOff bool // the group's retry topic takes no messages
	Part     bool // stored inside of a batch: a send-back would bring all of the batch again
	InPlace  bool // tried again in place, never sent back
	Tries    int  // failed tries of the present step
}

// First is the first step for a verdict.
func (p *Policy) First(f Facts) Step {
	switch {
	case f.Verdict.Kind == frame.VerdictAck && f.Outputs:
		return Step{Kind: StepProduce}
	case f.Verdict.Kind == frame.VerdictAck:
		return Step{Kind: StepSettle}
	case f.Verdict.Kind == frame.VerdictReject && p.NoDeadLetters:
		return p.exhausted(f, "rejected ("+f.Verdict.Class+"), and a broadcasting group has no dead letters: "+f.Verdict.Text)
	case f.Verdict.Kind == frame.VerdictReject:
		return p.deadLetter(f)
	case f.Attempts > p.MaxRetries:
		return p.exhausted(f, "")
	case f.InPlace:
		return Step{Kind: StepAgain, Wait: p.Backoff.wait(f.Attempts, f.Verdict.Delay), Why: fmt.Sprintf("attempt %d failed: %s", f.Attempts, f.Verdict.Text)}
	case f.RetryOff:
		return p.exhausted(f, "the group's retry topic takes no messages, so a failed message cannot be tried later")
	case f.Part:
		return Step{Kind: StepResend, Topic: wire.RetryTopic(p.Group), Level: p.Level(f.Verdict.Delay)}
	default:
		return Step{Kind: StepSendBack, Level: p.Level(f.Verdict.Delay)}
	}
}

func (p *Policy) exhausted(f Facts, why string) Step {
	switch p.OnExhausted {
	case ExhaustedSkip:
		return Step{Kind: StepSkip}
	case ExhaustedBlock:
		if why == "" {
			why = fmt.Sprintf("failed %d times, on_exhausted is block: %s", f.Attempts, f.Verdict.Text)
		}
		return Step{Kind: StepAgain, Wait: p.BlockPause, Why: why, Blocked: true}
	default:
		return p.deadLetter(f)
	}
}

func (p *Policy) deadLetter(f Facts) Step {
	if f.InPlace { // a group that holds queue locks sends nothing back
		return Step{Kind: StepResend, Topic: wire.DLQTopic(p.Group)}
	}
	if f.RetryOff || f.Part { // 36 goes through the retry topic even on its way to the dead letters (consumer-semantics.md 8.1 steps 4-6)
		return Step{Kind: StepResend, Topic: wire.DLQTopic(p.Group)}
	}
	return Step{Kind: StepSendBack, Level: -1}
}

// Outcome classifies how a step's call ended.
type Outcome uint8

// The outcomes.
const (
	OutcomeDone     Outcome = iota + 1
	OutcomeRefused          // or unknown: it is tried again, and may store twice
	OutcomeGone             // the broker no longer has the original
	OutcomeRetryOff         // the retry topic is not writable
	OutcomeNoTopic          // the dead-letter topic does not exist yet
)

// Next is the step after a call.
func (p *Policy) Next(f Facts, done Step, o Outcome, text string) Step {
	switch o {
	case OutcomeDone:
		return Step{Kind: StepSettle}
	case OutcomeGone:
		if done.Level < 0 {
			return Step{Kind: StepResend, Topic: wire.DLQTopic(p.Group)}
		}
		return Step{Kind: StepResend, Topic: wire.RetryTopic(p.Group), Level: done.Level}
	case OutcomeRetryOff:
		f.RetryOff = true
		s := p.First(f)
		s.Off = true
		return s
	case OutcomeNoTopic: // a send to the retry topic with its retries used up makes the dead-letter topic
		return Step{Kind: StepResend, Topic: wire.RetryTopic(p.Group), Level: -1, Wait: backoff(f.Tries), Why: text}
	default:
		again := done
		again.Wait, again.Why = backoff(f.Tries), text
		return again
	}
}

// The pauses between tries of one message's step.
const (
	firstBackoff = 200 * time.Millisecond
	longBackoff  = 10 * time.Second
)

func backoff(tries int) time.Duration {
	d := firstBackoff
	for range min(tries, 10) {
		d *= 2
	}
	return min(d, longBackoff)
}
