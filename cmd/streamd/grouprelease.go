package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/streamd/streamd/internal/grouprelease"
	"github.com/streamd/streamd/internal/groupview"
	"github.com/streamd/streamd/internal/rocketmq"
)

// releaseFlags is the command line of group release.
type releaseFlags struct {
	cluster clusterFlags
	out     output
	group   string
	at      string
	topic   string
	queues  []string
	dryRun  bool

	position grouprelease.Position
	places   []grouprelease.Place
}

func newGroupRelease() *cobra.Command {
	var r releaseFlags
	cmd := &cobra.Command{
		Use:   "release GROUP",
		Short: "Give queues that are held for want of a position the one that you choose",
		Long: `release is for queues that a running member holds as offsets_lost or offset_out_of_range: where to go on is not known, and is
the operator's to say. It stores the position for those queues alone, on every version of RocketMQ, and waits until their
owners go on from there, which takes some seconds. Other queues are not touched, whatever is named.`,
		Example: `  streamd group release billing --at min -n mq-ns1:9876 --dry-run
  streamd group release billing --at 2h -c streamd.yaml --topic Orders
  streamd group release billing --at 120345 -c streamd.yaml --topic Orders --queue broker-a/3`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if err := nameGroup(cmd, &r.group, given); err != nil {
				return err
			}
			if err := r.check(r.group); err != nil {
				return usageError{cmd.CommandPath(), err}
			}
			return r.cluster.with(cmd, func(ctx context.Context, client *rocketmq.Client) error { return r.run(ctx, cmd, client, r.group) })
		},
	}
	r.cluster.bind(cmd, time.Minute)
	r.out.bind(cmd)
	f := cmd.Flags()
	f.StringVar(&r.at, "at", "", "where to go on: min, max, an offset, a time as 2026-11-30T08:00:00Z, or 2h for two hours ago")
	bindGroup(cmd, &r.group)
	f.StringVarP(&r.topic, "topic", "t", "", "only queues of this topic")
	f.StringArrayVar(&r.queues, "queue", nil, "only this queue, BROKER/ID; repeatable")
	f.BoolVar(&r.dryRun, "dry-run", false, "tell what would be stored, and store nothing")
	return cmd
}

// check reads what was written.
func (r *releaseFlags) check(group string) (err error) {
	topics := []string{}
	if r.topic != "" {
		topics = append(topics, r.topic)
	}
	if err := groupview.CheckNames(group, topics); err != nil {
		return err
	}
	if r.position, err = parsePosition(r.at, time.Now()); err != nil {
		return err
	}
	for _, q := range r.queues {
		place, err := grouprelease.ParsePlace(q)
		if err != nil {
			return fmt.Errorf("--queue: %w", err)
		}
		r.places = append(r.places, place)
	}
	return nil
}

// parsePosition reads --at. There is no default: it decides which messages are handled.
func parsePosition(s string, now time.Time) (grouprelease.Position, error) {
	if s == "" {
		return grouprelease.Position{}, errors.New("where to go on is not said; write --at min, --at max, --at OFFSET, --at 2026-11-30T08:00:00Z, or --at 2h for two hours ago")
	}
	if at, ok := grouprelease.ParsePosition(s); ok {
		return at, nil
	}
	t, err := parseTime(s, now)
	if err != nil {
		return grouprelease.Position{}, fmt.Errorf("--at: %q is no position; write min, max, an offset, a time as 2026-11-30T08:00:00Z, or 2h for two hours ago", s)
	}
	return grouprelease.AtTime(t), nil
}

func (r *releaseFlags) run(ctx context.Context, cmd *cobra.Command, client *rocketmq.Client, group string) error {
	var topics []string
	if r.topic != "" {
		topics = []string{r.topic}
	}
	g, err := groupview.Read(ctx, client, group, topics)
	if err != nil {
		return err
	}
	for _, n := range g.Notes {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: %s\n", n)
	}
	held, err := grouprelease.Choose(g, r.topic, r.places)
	if err != nil {
		return err
	}
	var unseen error
	if len(r.places) == 0 { // queues that were named are all seen
		unseen = grouprelease.Unseen(g, r.topic, held)
	}
	steps, err := grouprelease.Plan(ctx, client, group, held, r.position)
	if err != nil {
		return errors.Join(err, unseen)
	}
	if len(steps) > 0 && !r.dryRun {
		err = grouprelease.Release(ctx, client, group, steps)
	}
	return errors.Join(err, r.show(cmd, group, steps, unseen == nil), unseen)
}

// show prints the steps. That there are none says something only when everything was seen.
func (r *releaseFlags) show(cmd *cobra.Command, group string, steps []grouprelease.Step, seen bool) error {
	w := cmd.OutOrStdout()
	switch {
	case r.out.json():
		return printJSON(w, steps)
	case len(steps) == 0 && !seen:
		return nil
	case len(steps) == 0:
		fmt.Fprintf(w, "no queue of %s is held for want of a position\n", group)
		return nil
	}
	if err := grouprelease.Text(w, steps); err != nil {
		return err
	}
	if r.dryRun {
		fmt.Fprintln(w, "dry run: nothing was stored")
	}
	return nil
}
