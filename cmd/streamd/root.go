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
	root.AddCommand(newRun(), newValidate(), newConfig(), newProduce(), newBroker(), newGroup(), newPlugin(), newAllocate(), newServePlugin(), newVersion())
	return root
}

// family is a command that only holds others. It runs, and shows its help, because cobra checks the arguments of none that
// does not: a misspelled member would be no error.
func family(use, short string, members ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(members...)
	return cmd
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
