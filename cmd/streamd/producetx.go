package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/produce"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// transactionFlags are produce's, for sending in transactions.
type transactionFlags struct {
	outcome string
	group   string
	answer  string
	wait    time.Duration
}

func (t *transactionFlags) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&t.outcome, "transaction", "", "make each message a transaction and end it: commit, rollback, or unknown, which leaves it open until the broker asks")
	f.StringVar(&t.group, "producer-group", "streamd-produce", "producer group of the transactions")
	f.StringVar(&t.answer, "check", "", "answer to a broker that asks how a transaction ended: commit, rollback or unknown; default: what --transaction says")
	f.DurationVar(&t.wait, "check-wait", 2*time.Minute, "how long to wait until the broker has asked about every open transaction; brokers ask after some 6 s to a minute")
}

func outcomeOf(flag, text string) (rocketmq.Outcome, error) {
	for _, o := range []rocketmq.Outcome{rocketmq.OutcomeCommit, rocketmq.OutcomeRollback, rocketmq.OutcomeUnknown} {
		if o.String() == text {
			return o, nil
		}
	}
	return 0, fmt.Errorf("--%s %q: write commit, rollback or unknown", flag, text)
}

// check refuses what cannot be meant; batch is produce's --batch.
func (t *transactionFlags) check(cmd *cobra.Command, p *produceFlags) error {
	usage := func(err error) error { return usageError{cmd.CommandPath(), err} }
	if t.outcome == "" {
		for _, name := range []string{"producer-group", "check", "check-wait"} {
			if cmd.Flags().Changed(name) {
				return usage(fmt.Errorf("--%s is for transactions: add --transaction commit, rollback or unknown", name))
			}
		}
		return nil
	}
	if t.answer == "" {
		t.answer = t.outcome
	}
	_, outcome := outcomeOf("transaction", t.outcome)
	_, answer := outcomeOf("check", t.answer)
	if err := errors.Join(outcome, answer); err != nil {
		return usage(err)
	}
	if err := wire.ValidateGroup(t.group); err != nil {
		return usage(fmt.Errorf("--producer-group: %w", err))
	}
	switch {
	case p.options.Batch > 1:
		return usage(errors.New("--transaction and --batch: a broker takes transactions one by one; leave --batch out"))
	case p.options.RetryFor > 0:
		return usage(errors.New("--transaction and --retry-for: a transaction whose end is not confirmed must not be sent again; leave --retry-for out"))
	case p.delay != "":
		return usage(errors.New("--transaction and --delay: a message of a transaction cannot be delayed"))
	case t.wait <= 0:
		return usage(fmt.Errorf("--check-wait %s: write how long to wait, for instance 2m", t.wait))
	}
	return nil
}

// sender is what messages go to: the client itself, or transactions of it. finish waits until every open transaction was
// asked about; it is to be called once, whatever happened.
func (t *transactionFlags) sender(ctx context.Context, cmd *cobra.Command, p *produceFlags, client *rocketmq.Client) (to produce.Sender, finish func() error, err error) {
	if t.outcome == "" {
		return client, func() error { return nil }, nil
	}
	outcome, err := outcomeOf("transaction", t.outcome)
	if err != nil {
		return nil, nil, err
	}
	answer, err := outcomeOf("check", t.answer)
	if err != nil {
		return nil, nil, err
	}
	began := time.Now()
	tx := produce.NewTransactions(client, t.group, outcome, answer, func(c produce.Checked) { p.showCheck(cmd, c, time.Since(began)) })
	if err := tx.Join(ctx); err != nil {
		return nil, nil, err
	}
	return tx, func() error { return t.finish(ctx, cmd, tx, outcome) }, nil
}

func (t *transactionFlags) finish(ctx context.Context, cmd *cobra.Command, tx *produce.Transactions, outcome rocketmq.Outcome) error {
	var err error
	if outcome == rocketmq.OutcomeUnknown && ctx.Err() == nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "waiting up to %s until the broker asks about the open transactions\n", t.wait)
		bounded, cancel := limited(ctx, t.wait)
		defer cancel()
		if err = tx.Wait(bounded); err != nil {
			err = exitcode.With(exitcode.Runtime, fmt.Errorf("%w; they stay open, and any producer of group %s is asked", err, t.group))
		}
	}
	leaving, cancel := limited(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(err, tx.Leave(leaving))
}

// did is what became of messages whose sending went well.
func (t *transactionFlags) did() string {
	switch t.outcome {
	case rocketmq.OutcomeCommit.String():
		return "committed"
	case rocketmq.OutcomeRollback.String():
		return "rolled back"
	case rocketmq.OutcomeUnknown.String():
		return "left open"
	default:
		return "stored"
	}
}

// checkLine is one line of produce -o json about a broker's question.
type checkLine struct {
	Check     string  `json:"check"` // the answer
	UniqueKey string  `json:"unique_key"`
	Times     int     `json:"times,omitempty"`
	After     float64 `json:"after_seconds"`
}

func (p *produceFlags) showCheck(cmd *cobra.Command, c produce.Checked, after time.Duration) {
	if p.out.json() {
		if text, err := json.Marshal(checkLine{Check: c.Answer.String(), UniqueKey: c.MessageID, Times: c.Times, After: after.Seconds()}); err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "%s\n", text)
		}
		return
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "the broker asked about %s after %s: answered %s\n", c.MessageID, after.Round(100*time.Millisecond), c.Answer)
}
