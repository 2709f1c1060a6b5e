package main

import (
	"github.com/spf13/cobra"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "streamd",
		Short:         "Consume RocketMQ through plugins",
		Long:          "streamd joins consumer groups of RocketMQ, divides their queues by a strategy, and hands messages to handlers\nthat run in their own processes. Start with: streamd run -c FILE",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError{cmd.CommandPath(), err} })
	root.AddCommand(newRun(), newValidate(), newConfig(), newProduce(), newGroup(), newPlugin(), newAllocate(), newServePlugin(), newVersion())
	return root
}

// args wraps a check of arguments, so that a breach is told as wrong usage.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if err := check(cmd, given); err != nil {
			return usageError{cmd.CommandPath(), err}
		}
		return nil
	}
}
