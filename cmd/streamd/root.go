package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/streamd/streamd/internal/buildinfo"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "streamd",
		Short:         "Consume RocketMQ through plugins",
		Long:          "streamd joins consumer groups of RocketMQ, divides their queues by a strategy, and hands messages to handlers\nthat run in their own processes. Start with: streamd run -c FILE",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       buildinfo.Read().Version,
		Args:          args(cobra.NoArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("streamd {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError{cmd.CommandPath(), err} })
	root.SetUsageFunc(usage)
	root.SetHelpCommand(newHelp())
	root.AddCommand(newInit(), newRun(), newValidate(), newConfig(), newProduce(), newBroker(), newGroup(), newDLQ(), newPlugin(), newAllocate(), newServePlugin(), newVersion())
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" { // cobra's own shows its help for a shell that it does not know
			cmd.Args = args(cobra.NoArgs)
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
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
			return usageError{cmd.CommandPath(), wrongArgs(cmd, given, err)}
		}
		return nil
	}
}

// wrongArgs says in words what is wrong with the arguments that a check refused.
func wrongArgs(cmd *cobra.Command, given []string, refused error) error {
	wanted := positional(cmd.Use)
	switch {
	case cmd.HasSubCommands() && len(given) > 0:
		cmd.SuggestionsMinimumDistance = 2
		if like := cmd.SuggestionsFor(given[0]); len(like) > 0 {
			return fmt.Errorf("unknown command %q, did you mean %s", given[0], strings.Join(like, " or "))
		}
		return fmt.Errorf("unknown command %q", given[0])
	case len(given) < len(wanted):
		return fmt.Errorf("%s is missing", wanted[len(given)])
	case len(given) > len(wanted):
		return fmt.Errorf("unexpected argument %q", given[len(wanted)])
	}
	return refused
}

// positional lists the arguments that a usage line demands: the words in capitals before the flags.
func positional(use string) (names []string) {
	for _, word := range strings.Fields(use)[1:] {
		if word != strings.ToUpper(word) || strings.HasPrefix(word, "-") || strings.HasPrefix(word, "[") {
			break
		}
		names = append(names, word)
	}
	return names
}
