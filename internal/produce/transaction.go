package produce

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/streamd/streamd/internal/rocketmq"
)

// Transactor sends in transactions. *rocketmq.Client fills it.
type Transactor interface {
	JoinProducers(ctx context.Context, spec rocketmq.ProducerSpec) error
	LeaveProducers(ctx context.Context, group string) error
	Prepare(ctx context.Context, group string, m *rocketmq.OutgoingMessage) (*rocketmq.HalfMessage, error)
	EndTransaction(ctx context.Context, half *rocketmq.HalfMessage, outcome rocketmq.Outcome) error
}

// Checked is a broker's question about a message that Transactions sent, and the answer.
type Checked struct {
	MessageID string
	Times     int // how often the broker has asked for it, this time included; 0 = it does not say
	Answer    rocketmq.Outcome
}

// Transactions is a Sender whose every message is a transaction of its own that ends with Outcome. Make it with
// NewTransactions. Its methods may run concurrently.
type Transactions struct {
	to      Transactor
	group   string
	outcome rocketmq.Outcome
	answer  rocketmq.Outcome
	checked func(Checked)

	mu   sync.Mutex
	sent map[string]bool // by message id: a broker is to ask about it
	news chan struct{}   // closed when a question was answered
}

// NewTransactions makes a sender of a producer group. outcome ends each transaction; answer is what a broker is told that
// asks how one ended, and checked hears of each question about a message of this sender that was answered, one call at a time. Questions
// about other messages of the group get OutcomeUnknown: their own producers know.
func NewTransactions(to Transactor, group string, outcome, answer rocketmq.Outcome, checked func(Checked)) *Transactions {
	return &Transactions{to: to, group: group, outcome: outcome, answer: answer, checked: checked, sent: map[string]bool{}, news: make(chan struct{})}
}

// Join makes the group known to brokers.
func (t *Transactions) Join(ctx context.Context) error {
	return t.to.JoinProducers(ctx, rocketmq.ProducerSpec{Group: t.group, Check: t.check, Answered: t.answered}) //nolint:wrapcheck // names the group
}

// Leave takes the group back.
func (t *Transactions) Leave(ctx context.Context) error { return t.to.LeaveProducers(ctx, t.group) } //nolint:wrapcheck // as above

func (t *Transactions) check(_ context.Context, half *rocketmq.HalfMessage) rocketmq.Outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, own := t.sent[half.MessageID]; !own {
		return rocketmq.OutcomeUnknown
	}
	return t.answer
}

// answered counts a question when its answer has reached the broker, not before: who waits for it may leave then, and the
// client with it. What did not reach it is asked again.
func (t *Transactions) answered(half *rocketmq.HalfMessage, outcome rocketmq.Outcome, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, own := t.sent[half.MessageID]; !own || err != nil {
		return
	}
	t.sent[half.MessageID] = false
	t.checked(Checked{MessageID: half.MessageID, Times: half.Times, Answer: outcome})
	close(t.news)
	t.news = make(chan struct{})
}

// Send implements Sender: it prepares m and ends its transaction. The result's offset is -1: a committed message gets its
// place when it is committed, and no broker tells which.
func (t *Transactions) Send(ctx context.Context, m *rocketmq.OutgoingMessage) (rocketmq.SendResult, error) {
	half, err := t.to.Prepare(ctx, t.group, m)
	if err != nil {
		return rocketmq.SendResult{}, err //nolint:wrapcheck // names the message
	}
	t.mu.Lock()
	t.sent[half.MessageID] = t.outcome == rocketmq.OutcomeUnknown
	t.mu.Unlock()
	stored := rocketmq.SendResult{Status: rocketmq.SendOK, MessageID: half.MessageID, Queue: half.Queue, Offset: -1}
	if err := t.to.EndTransaction(ctx, half, t.outcome); err != nil {
		return stored, fmt.Errorf("prepared, and its end is not confirmed: the broker asks for it later: %w", err)
	}
	return stored, nil
}

var errNoBatch = errors.New("transactions are sent one by one")

// SendBatch implements Sender: there is no batch of transactions.
func (t *Transactions) SendBatch(context.Context, string, []*rocketmq.OutgoingMessage) ([]rocketmq.SendResult, error) {
	return nil, errNoBatch
}

// Wait returns when brokers have been answered about each message whose transaction was left open, or ctx ends; the error
// then says how many they have not been answered about.
func (t *Transactions) Wait(ctx context.Context) error {
	for {
		open, news := t.open()
		if open == 0 {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("no broker has asked, and been answered, about %d of the open transactions: %w", open, context.Cause(ctx))
		}
	}
}

func (t *Transactions) open() (n int, news <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, open := range t.sent {
		if open {
			n++
		}
	}
	return n, t.news
}
