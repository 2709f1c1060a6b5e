package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/streamd/streamd/internal/groupview"
	"github.com/streamd/streamd/internal/rocketmq"
)

func newGroup() *cobra.Command {
	return family("group", "Look at consumer groups, and release held queues", newGroupStatus(), newGroupRelease())
}

func newGroupStatus() *cobra.Command {
	var (
		cluster clusterFlags
		out     output
		topics  []string
	)
	cmd := &cobra.Command{
		Use:   "status GROUP",
		Short: "Show members, queues, owners, offsets, lag, and why something is held",
		Long:  "status asks the brokers and the members of any group, streamd in it or not. It joins nothing and changes nothing.",
		Example: `  streamd group status billing -n 127.0.0.1:9876
  streamd group status billing -c streamd.yaml -o json`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if err := groupview.CheckNames(given[0], topics); err != nil {
				return usageError{cmd.CommandPath(), err}
			}
			return cluster.with(cmd, func(ctx context.Context, client *rocketmq.Client) error {
				g, err := groupview.Read(ctx, client, given[0], topics)
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
	cmd.Flags().StringArrayVar(&topics, "topic", nil, "also look at this topic; for a group that nobody is in")
	return cmd
}
