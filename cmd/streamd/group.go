package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/streamd/streamd/internal/groupview"
	"github.com/streamd/streamd/internal/rocketmq"
)

func newGroup() *cobra.Command {
	return family("group", "Look at consumer groups, and release held queues", newGroupStatus(), newGroupRelease())
}

// bindGroup adds --group, which says what the argument GROUP does, as other commands have it.
func bindGroup(cmd *cobra.Command, group *string) {
	cmd.Flags().StringVarP(group, "group", "g", "", "the group, in the place of GROUP")
}

// nameGroup takes the group from the argument or the flag.
func nameGroup(cmd *cobra.Command, group *string, given []string) error {
	switch {
	case len(given) == 1 && *group != "":
		return usageError{cmd.CommandPath(), errors.New("GROUP and --group both name a group; write one of them")}
	case len(given) == 1:
		*group = given[0]
	case *group == "":
		return usageError{cmd.CommandPath(), errors.New("GROUP is missing")}
	}
	return nil
}

func newGroupStatus() *cobra.Command {
	var (
		cluster clusterFlags
		out     output
		topics  []string
		group   string
	)
	cmd := &cobra.Command{
		Use:   "status GROUP",
		Short: "Show members, queues, owners, offsets, lag, and why something is held",
		Long:  "status asks the brokers and the members of any group, streamd in it or not. It joins nothing and changes nothing.",
		Example: `  streamd group status billing -n 127.0.0.1:9876
  streamd group status billing -c streamd.yaml -o json`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if err := nameGroup(cmd, &group, given); err != nil {
				return err
			}
			if err := groupview.CheckNames(group, topics); err != nil {
				return usageError{cmd.CommandPath(), err}
			}
			return cluster.with(cmd, func(ctx context.Context, client *rocketmq.Client) error {
				g, err := groupview.Read(ctx, client, group, topics)
				if err != nil {
					return err
				}
				if out.json() {
					return printJSON(cmd.OutOrStdout(), g)
				}
				return g.Text(cmd.OutOrStdout())
			})
		},
	}
	cluster.bind(cmd, 30*time.Second)
	out.bind(cmd)
	bindGroup(cmd, &group)
	cmd.Flags().StringArrayVarP(&topics, "topic", "t", nil, "also look at this topic; for a group that nobody is in")
	return cmd
}
