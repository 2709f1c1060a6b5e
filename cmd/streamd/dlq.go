package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/streamd/streamd/internal/deadletters"
	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/rocketmq"
)

func newDLQ() *cobra.Command {
	return family("dlq", "List, show and redrive dead letters", newDLQList(), newDLQShow(), newDLQRedrive())
}

// letterFlags say which dead letters are meant.
type letterFlags struct {
	group    string
	filter   deadletters.Filter
	from, to string
}

func (l *letterFlags) bindGroup(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&l.group, "group", "g", "", "the group whose dead letters are meant; list and redrive take it as an argument too")
}

func (l *letterFlags) bind(cmd *cobra.Command) {
	l.bindGroup(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&l.filter.IDs, "id", nil, "only these: id of the dead letter, or of the message; repeatable")
	f.StringSliceVar(&l.filter.Keys, "key", nil, "only those with one of these keys; repeatable")
	f.StringVarP(&l.filter.Topic, "topic", "t", "", "only those that came from this topic")
	f.StringVar(&l.from, "from", "", "only those that died at this time or later: 2026-11-30T08:00:00Z, or 2h for two hours ago")
	f.StringVar(&l.to, "until", "", "only those that died before this time")
}

// name takes the group from an argument, where the flag does not have it.
func (l *letterFlags) name(cmd *cobra.Command, given []string) error {
	if len(given) == 0 {
		return nil // told by check, if the flag is not there either
	}
	return nameGroup(cmd, &l.group, given)
}

// check reads what was written.
func (l *letterFlags) check(cmd *cobra.Command) error {
	usage := func(err error) error { return usageError{cmd.CommandPath(), err} }
	if l.group == "" {
		return usage(errors.New("GROUP or --group is missing"))
	}
	var err error
	if l.filter.From, err = parseTime(l.from, time.Now()); err != nil {
		return usage(fmt.Errorf("--from: %w", err))
	}
	if l.filter.To, err = parseTime(l.to, time.Now()); err != nil {
		return usage(fmt.Errorf("--until: %w", err))
	}
	if !l.filter.From.IsZero() && !l.filter.To.IsZero() && !l.filter.From.Before(l.filter.To) {
		return usage(errors.New("--from is not before --until: nothing is meant"))
	}
	return nil
}

// parseTime reads a time of RFC 3339, or how long ago; "" is none.
func parseTime(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(s); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is no time; write 2026-11-30T08:00:00Z, or 2h for two hours ago", s)
	}
	return t, nil
}

// openBox looks for the group's dead letters. None at all is no failure of listing.
func openBox(ctx context.Context, client *rocketmq.Client, group string) (*deadletters.Box, error) {
	box, err := deadletters.Open(ctx, client, group)
	if errors.Is(err, deadletters.ErrUnreadable) {
		return nil, exitcode.With(exitcode.Environment, err)
	}
	return box, err
}

func newDLQList() *cobra.Command {
	var (
		cluster  clusterFlags
		out      output
		letters  letterFlags
		limit    int
		failures string
	)
	cmd := &cobra.Command{
		Use:   "list GROUP",
		Short: "Show how many dead letters a group has, and those that died last, with the reason",
		Long: `list reads the dead letters of a group; it joins nothing and stores nothing. The reason is what streamd recorded of the last
failed attempt (failure_topic of the stream); a Java member records none.`,
		Example: `  streamd dlq list billing -n mq-ns1:9876
  streamd dlq list billing -c streamd.yaml --from 2h --limit 100 -o json`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if err := letters.name(cmd, given); err != nil {
				return err
			}
			if err := letters.check(cmd); err != nil {
				return err
			}
			if limit < 0 {
				return usageError{cmd.CommandPath(), fmt.Errorf("--limit %d is negative; 0 is all", limit)}
			}
			return cluster.with(cmd, func(ctx context.Context, client *rocketmq.Client) error {
				box, err := openBox(ctx, client, letters.group)
				if err != nil {
					return err
				}
				l := &deadletters.Listing{Box: box, Total: box.Count(), Notes: []string{}}
				if l.Letters, err = box.Newest(ctx, letters.filter, limit); err != nil {
					return err
				}
				l.Notes = append(l.Notes, box.Reasons(ctx, failures, l.Letters)...)
				if out.json() {
					return printJSON(cmd.OutOrStdout(), l)
				}
				return l.Text(cmd.OutOrStdout())
			})
		},
	}
	cluster.bind(cmd, time.Minute)
	out.bind(cmd)
	letters.bind(cmd)
	cmd.Flags().IntVar(&limit, "limit", 20, "at most so many, the last first; 0 = all")
	cmd.Flags().StringVar(&failures, "failures", deadletters.FailureTopic, "topic of the failure records, failure_topic of the stream; - looks none up")
	return cmd
}

func newDLQShow() *cobra.Command {
	var (
		cluster  clusterFlags
		out      output
		letters  letterFlags
		raw      bool
		failures string
	)
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one dead letter with its properties and body",
		Long:  "show looks for a dead letter by its own id or by the message's. Of a long body the beginning is shown, of one that is no text\nnothing; --raw writes the body alone, as it is, and -o json all of it.",
		Example: `  streamd dlq show --group billing -n mq-ns1:9876 C0A8000100002A9F0000000000001234
  streamd dlq show --group billing -c streamd.yaml --raw C0A8000100002A9F0000000000001234 > body`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if err := letters.check(cmd); err != nil {
				return err
			}
			if raw && out.json() {
				return usageError{cmd.CommandPath(), errors.New("--raw and -o json exclude each other")}
			}
			return cluster.with(cmd, func(ctx context.Context, client *rocketmq.Client) error {
				box, err := openBox(ctx, client, letters.group)
				if err != nil {
					return err
				}
				l, err := box.Find(ctx, given[0])
				if err != nil {
					return err
				}
				notes := box.Reasons(ctx, failures, []*deadletters.Letter{l})
				return showLetter(cmd, l, notes, raw, out.json())
			})
		},
	}
	cluster.bind(cmd, time.Minute)
	out.bind(cmd)
	letters.bindGroup(cmd)
	cmd.Flags().BoolVar(&raw, "raw", false, "write the body alone, as it is")
	cmd.Flags().StringVar(&failures, "failures", deadletters.FailureTopic, "topic of the failure records, failure_topic of the stream; - looks none up")
	return cmd
}

func showLetter(cmd *cobra.Command, l *deadletters.Letter, notes []string, raw, asJSON bool) error {
	if !raw && !asJSON {
		for _, n := range notes {
			fmt.Fprintf(cmd.ErrOrStderr(), "note: %s\n", n)
		}
		return l.Text(cmd.OutOrStdout())
	}
	body, err := l.Body()
	if err != nil {
		return err
	}
	if raw {
		_, err := cmd.OutOrStdout().Write(body)
		return err
	}
	return printJSON(cmd.OutOrStdout(), wholeLetter{l, l.Properties(), body, notes})
}

// wholeLetter is what dlq show -o json prints.
type wholeLetter struct {
	*deadletters.Letter
	Properties map[string]string `json:"properties"`
	Body       []byte            `json:"body_base64"`
	Notes      []string          `json:"notes,omitempty"`
}
