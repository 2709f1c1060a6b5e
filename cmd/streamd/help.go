package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newHelp is help as a command. cobra's own ends well for a command that there is not.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND...]",
		Short:   "Show what a command does, with its flags",
		Example: "  streamd help run\n  streamd help plugin try",
		ValidArgsFunction: func(cmd *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			if about, rest, err := cmd.Root().Find(given); err == nil && len(rest) == 0 {
				for _, c := range about.Commands() {
					if c.IsAvailableCommand() {
						names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, given []string) error {
			about, rest, err := cmd.Root().Find(given)
			switch {
			case err != nil:
				return usageError{cmd.Root().CommandPath(), err}
			case len(rest) > 0 && about.HasSubCommands():
				return usageError{about.CommandPath(), wrongArgs(about, rest, nil)}
			}
			about.InitDefaultHelpFlag()
			about.InitDefaultVersionFlag()
			return about.Help()
		},
	}
}

// usage is cobra's, with switches as they are typed: --dry-run, where pflag shows --dry-run[=true|false].
func usage(cmd *cobra.Command) error {
	switches := map[*pflag.Flag]pflag.Value{}
	plainly := func(f *pflag.Flag) {
		if f.Value.Type() == "bool" {
			switches[f] = f.Value
			f.Value = plainSwitch{f.Value}
		}
	}
	cmd.LocalFlags().VisitAll(plainly)
	cmd.InheritedFlags().VisitAll(plainly)
	defer func() {
		for f, was := range switches {
			f.Value = was
		}
	}()
	return (&cobra.Command{}).UsageFunc()(cmd)
}

// plainSwitch is a flag that takes no value, for help.
type plainSwitch struct{ pflag.Value }

// Type is what pflag shows nothing for.
func (plainSwitch) Type() string { return "boolfunc" }
