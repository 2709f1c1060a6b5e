package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/streamd/streamd/internal/deadletters"
	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/lifecycle"
	"github.com/streamd/streamd/internal/rocketmq"
)

// redriveFlags is the command line of dlq redrive.
type redriveFlags struct {
	cluster clusterFlags
	out     output
	letters letterFlags
	all     bool
	journal string
	options deadletters.Options
}

func newDLQRedrive() *cobra.Command {
	var r redriveFlags
	cmd := &cobra.Command{
		Use:   "redrive GROUP",
		Short: "Send chosen dead letters back to be handled again",
		Long: `redrive sends each chosen dead letter once, with its properties, its trace and all of its retries anew. It goes to the group's
own retry topic, so that no other group sees it again; --to topic sends it to the topic that it came from, where every
group does. The dead letter itself stays until it expires.

A journal on this machine has what was sent: run the same command again to go on where it ended, with a signal, a crash or
a refusal. One that was being sent at a crash is named and needs a word, --uncertain send or skip.`,
		Example: `  streamd dlq redrive billing -n mq-ns1:9876 --all --dry-run
  streamd dlq redrive billing -c streamd.yaml --from 2h --rate 50
  streamd dlq redrive billing -c streamd.yaml --id C0A8000100002A9F0000000000001234 --to topic`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if err := r.letters.name(cmd, given); err != nil {
				return err
			}
			return r.run(cmd)
		},
	}
	r.cluster.bind(cmd, 0)
	r.out.bind(cmd)
	r.letters.bind(cmd)
	f := cmd.Flags()
	f.BoolVar(&r.all, "all", false, "every dead letter of the group")
	f.Var(newOneOf(&r.options.To, deadletters.ToRetry, deadletters.ToRetry, deadletters.ToTopic), "to", "retry: the group's own retry topic; topic: the one that it came from, which other groups read too")
	f.BoolVar(&r.options.DryRun, "dry-run", false, "tell what would be sent, and send nothing")
	f.Float64Var(&r.options.Rate, "rate", 0, "messages per second; 0 = as fast as they are stored")
	f.IntVar(&r.options.Limit, "limit", 0, "send at most so many; 0 = all that are chosen")
	f.BoolVar(&r.options.Again, "again", false, "also those that the journal has as sent")
	f.Var(newOneOf(&r.options.Uncertain, deadletters.UncertainStop, deadletters.UncertainStop, deadletters.UncertainSend, deadletters.UncertainSkip), "uncertain",
		"for one that was being sent at a crash: stop, send or skip")
	f.StringVar(&r.journal, "journal", "", "file that remembers what was sent; default: redrive-GROUP.jsonl here")
	return cmd
}

func (r *redriveFlags) run(cmd *cobra.Command) error {
	if err := r.letters.check(cmd); err != nil {
		return err
	}
	usage := func(err error) error { return usageError{cmd.CommandPath(), err} }
	switch {
	case !r.all && r.letters.filter.Empty():
		return usage(errors.New("which dead letters is not said; write --id, --key, --topic, --from, --until, or --all"))
	case r.all && !r.letters.filter.Empty():
		return usage(errors.New("--all means every dead letter, and --id, --key, --topic, --from or --until only some; write one of the two"))
	case r.options.Rate < 0 || r.options.Limit < 0:
		return usage(errors.New("--rate and --limit are 0 or more"))
	}
	if r.journal == "" {
		r.journal = "redrive-" + strings.ReplaceAll(r.letters.group, "|", "_") + ".jsonl"
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	return lifecycle.Run(cmd.Context(), signals, func(ctx context.Context) error {
		cmd.SetContext(ctx)
		r.cluster.once = true
		return r.cluster.with(cmd, func(ctx context.Context, client *rocketmq.Client) error { return r.redrive(ctx, cmd, client) }) //nolint:contextcheck // it has the command's
	})
}

func (r *redriveFlags) redrive(ctx context.Context, cmd *cobra.Command, client *rocketmq.Client) (err error) {
	box, err := openBox(ctx, client, r.letters.group)
	if err != nil {
		return err
	}
	if r.options.To == deadletters.ToRetry {
		if err := deadletters.CheckRetry(ctx, client, r.letters.group); err != nil {
			return err
		}
	}
	journal, err := r.open()
	if err != nil {
		return err
	}
	if journal != nil {
		defer func() { err = errors.Join(err, journal.Close()) }()
	}
	sum, err := box.Redrive(ctx, client, journal, r.letters.filter, r.options, func(o deadletters.Outcome) { r.show(cmd.OutOrStdout(), o) })
	r.summarize(cmd, sum)
	if err != nil && sum.Sent > 0 {
		return fmt.Errorf("%d are sent; the same command goes on behind them: %w", sum.Sent, err)
	}
	return err
}

// open opens the journal. A dry run makes none.
func (r *redriveFlags) open() (*deadletters.Journal, error) {
	if r.options.DryRun {
		if _, err := os.Stat(r.journal); errors.Is(err, os.ErrNotExist) {
			return nil, nil //nolint:nilnil // there is none, and none is needed
		}
	}
	j, err := deadletters.OpenJournal(r.journal)
	if err != nil {
		return nil, exitcode.With(exitcode.Environment, err)
	}
	return j, nil
}

func (r *redriveFlags) show(w io.Writer, o deadletters.Outcome) {
	if r.out.json() {
		if text, err := json.Marshal(o); err == nil {
			fmt.Fprintf(w, "%s\n", text)
		}
		return
	}
	fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%s %s → %s %s", o.ID, o.State, o.To, o.NewID), " "))
}

// summarize counts for people, and beside the lines of -o json.
func (r *redriveFlags) summarize(cmd *cobra.Command, s deadletters.Summary) {
	w := cmd.OutOrStdout()
	if r.out.json() {
		w = cmd.ErrOrStderr()
	}
	if r.options.DryRun {
		fmt.Fprintf(w, "dry run, nothing is sent now: of %d chosen %d would be sent, %d would not (%d sent before, %d uncertain)\n",
			s.Chosen, s.Planned, s.Already+s.Skipped, s.Already, s.Skipped)
		return
	}
	fmt.Fprintf(w, "%d chosen, %d sent, %d already sent, %d skipped; journal %s\n", s.Chosen, s.Sent, s.Already, s.Skipped, r.journal)
}
