package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/streamd/streamd/internal/plugintool"
	"github.com/streamd/streamd/internal/produce"
)

func newPluginTry() *cobra.Command {
	var (
		bf             binaryFlags
		out            output
		messages, file string
		trial          plugintool.Trial
		topic, tag     string
		lines, verbose bool
		deadline       time.Duration
	)
	cmd := &cobra.Command{
		Use:   "try BINARY [ARGUMENT...] -m messages.jsonl",
		Short: "Hand messages to a plugin and show its verdicts, outputs and logs; no broker needed",
		Long: `try starts the plugin as streamd does, hands it each message, one after another, and shows what it answers. A line of the
file is an object with the keys that "streamd produce --json" takes; with --lines each line is a body.`,
		Example: `  streamd plugin try ./bin/billing -m messages.jsonl
  echo '{"body":"hello","keys":["A-1"]}' | streamd plugin try ./bin/billing -m - --config billing.yaml -o json`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			var err error
			if trial.Plugin, err = bf.plugin(cmd, given); err != nil {
				return err
			}
			if trial.Config, err = plugintool.ReadConfig(file); err != nil {
				return err
			}
			in, err := openInput(cmd, messages)
			if err != nil {
				return err
			}
			defer in.Close() //nolint:errcheck // only read
			template := produce.Template{Topic: topic, Tag: tag}
			trial.Deadline = deadline
			if trial.Messages = produce.JSONLines(in, template); lines {
				trial.Messages = produce.Lines(in, template)
			}
			report, err := plugintool.Try(cmd.Context(), trial)
			if report == nil {
				return err
			}
			if out.json() {
				return errors.Join(printJSON(cmd.OutOrStdout(), report), err, report.Failed())
			}
			return errors.Join(report.Text(cmd.OutOrStdout(), verbose), err, report.Failed())
		},
	}
	bf.bind(cmd)
	out.bind(cmd)
	f := cmd.Flags()
	f.StringVarP(&messages, "messages", "m", "-", "file with one message a line; - is standard input")
	f.StringVar(&file, "config", "", "YAML or JSON file with the handler's config")
	f.StringVar(&trial.Use, "use", "", "handler, when the plugin has several")
	f.StringVarP(&topic, "topic", "t", "Try", "topic of messages that name none")
	f.StringVar(&tag, "tag", "", "tag of messages that name none")
	f.BoolVarP(&verbose, "verbose", "v", false, "show streamd's own log lines too; of what goes wrong they are always shown")
	f.BoolVar(&lines, "lines", false, "the file holds one body a line")
	f.DurationVar(&deadline, "deadline", time.Minute, "time a message may take")
	f.IntVar(&trial.Attempt, "attempt", 1, "which attempt the plugin is told it is")
	return cmd
}
