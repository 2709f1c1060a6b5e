package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/streamd/streamd/internal/plugintool"
)

func newAllocate() *cobra.Command {
	return family("allocate", "Try allocation strategies", newAllocateTry())
}

func newAllocateTry() *cobra.Command {
	var (
		bf                  binaryFlags
		out                 output
		input, file, binary string
		a                   plugintool.Allocation
	)
	cmd := &cobra.Command{
		Use:   "try STRATEGY",
		Short: "Ask a strategy one question and judge its answer as the engine does",
		Long: `try reads a question as JSON, asks a built-in strategy or one of a plugin, and shows who would own each queue, or why the answer would
not be applied. The log and "streamd group status" print such questions when a strategy fails.`,
		Example: `  echo '{"group":"g","topic":"T","self":"c1","members":["c1","c2"],"queues":["b/0","b/1","b/2"]}' | streamd allocate try averagely
  streamd allocate try nearest --plugin ./bin/plugins/nearest --input question.json`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			var err error
			a.Strategy = given[0]
			if a.Config, err = plugintool.ReadConfig(file); err != nil {
				return err
			}
			if binary != "" {
				p, err := bf.plugin(cmd, []string{binary})
				if err != nil {
					return err
				}
				a.Plugin = &p
			}
			in, err := openInput(cmd, input)
			if err != nil {
				return err
			}
			defer in.Close() //nolint:errcheck // only read
			if a.Question, err = plugintool.ReadQuestion(in); err != nil {
				return err
			}
			report, err := plugintool.Allocate(cmd.Context(), a)
			switch {
			case err != nil:
				return err
			case out.json():
				return errors.Join(printJSON(cmd.OutOrStdout(), report), report.Err())
			}
			return errors.Join(report.Text(cmd.OutOrStdout()), report.Err())
		},
	}
	bf.bind(cmd)
	out.bind(cmd)
	f := cmd.Flags()
	f.StringVarP(&input, "input", "i", "-", "file with the question; - is standard input")
	f.StringVar(&file, "config", "", "YAML or JSON file with the strategy's config")
	f.StringVar(&binary, "plugin", "", "binary of the plugin that offers the strategy")
	f.BoolVar(&a.AllowUncovered, "allow-uncovered", false, "take an answer that leaves queues to nobody by design")
	return cmd
}
