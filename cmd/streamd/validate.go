package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/plain"
	"github.com/streamd/streamd/internal/plugintool"
	"github.com/streamd/streamd/internal/uses"
)

// validation is what validate -o json prints.
type validation struct {
	OK       bool      `json:"ok"`
	Files    []string  `json:"files,omitempty"`
	Problems []problem `json:"problems"`
	Warnings []problem `json:"warnings,omitempty"` // what only the brokers can judge
	// PluginsAsked tells whether plugins have judged the configs given to them.
	PluginsAsked bool `json:"plugins_asked"`
}

type problem struct {
	Source string `json:"source"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	What   string `json:"what"`
	Try    string `json:"try,omitempty"`
}

func newValidate() *cobra.Command {
	var (
		cf                configFlags
		out               output
		show, schema, ask bool
	)
	cmd := &cobra.Command{
		Use:   "validate -c FILE",
		Short: "Check a config without starting anything",
		Long:  "validate reads, merges and checks a config and tells every problem with its place. It connects to nothing and\nstarts nothing. With --plugins it also starts each plugin, looks at its checksum, and holds the configs of handlers\nand strategies against what their components declare; strategies judge theirs themselves as well.",
		Example: `  streamd validate -c streamd.yaml
  streamd validate -c conf.d --overlay prod.yaml --print
  streamd validate -c streamd.yaml --plugins
  streamd validate --schema > streamd.schema.json`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if schema {
				return printSchema(cmd)
			}
			loaded, err := cf.load()
			if err == nil && ask {
				loaded, err = askPlugins(cmd.Context(), loaded)
			}
			switch {
			case out.json():
				return printValidation(cmd, loaded, ask, err)
			case err != nil:
				return err
			}
			for _, w := range loaded.Warnings {
				fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", w)
			}
			if show {
				return printConfig(cmd, loaded)
			}
			c := loaded.Config
			fmt.Fprintf(cmd.OutOrStdout(), "ok: %s, %s, %s%s\n",
				plain.Count(len(c.Streams), "stream"), plain.Count(len(c.Handlers), "handler"), plain.Count(len(c.Plugins), "plugin"), unasked(c, ask))
			return nil
		},
	}
	cf.bind(cmd)
	out.bind(cmd)
	cmd.Flags().BoolVar(&ask, "plugins", false, "start the plugins and hold the configs of handlers and strategies against their schemas")
	cmd.Flags().BoolVar(&show, "print", false, "print the effective config, secrets redacted")
	cmd.Flags().BoolVar(&schema, "schema", false, "print the JSON Schema of config files")
	return cmd
}

// unasked says what was not looked at.
func unasked(c *config.Config, ask bool) string {
	used := len(uses.Of(c))
	switch {
	case ask || used == 0:
		return ""
	case used == 1:
		return "; 1 config of a handler or strategy was not checked: add --plugins, which starts the plugins and asks them"
	}
	return fmt.Sprintf("; %d configs of handlers or strategies were not checked: add --plugins, which starts the plugins and asks them", used)
}

func printSchema(cmd *cobra.Command) error {
	s, err := config.Schema()
	if err != nil {
		return err
	}
	_, err = cmd.OutOrStdout().Write(s)
	return err
}

func printConfig(cmd *cobra.Command, loaded *config.Loaded) error {
	y, err := loaded.YAML()
	if err != nil {
		return err
	}
	_, err = cmd.OutOrStdout().Write(y)
	return err
}

// askPlugins starts the plugins of a config. What it returns shows no value that their schemas call secret.
func askPlugins(ctx context.Context, loaded *config.Loaded) (*config.Loaded, error) {
	entries, err := plugintool.List(ctx, loaded.Config, true)
	return plugintool.Redact(loaded, entries), err
}

// printValidation prints the outcome as JSON. The exit code is that of the text form.
func printValidation(cmd *cobra.Command, loaded *config.Loaded, ask bool, err error) error {
	v := validation{OK: err == nil, Problems: problemsOf(err), PluginsAsked: ask}
	if loaded != nil {
		v.Files, v.Warnings = loaded.Files, listed(loaded.Warnings)
	}
	if printErr := printJSON(cmd.OutOrStdout(), v); printErr != nil {
		return printErr
	}
	if err != nil {
		return &shown{err}
	}
	return nil
}

func listed(problems []config.Problem) []problem {
	found := []problem{}
	for _, p := range problems {
		found = append(found, problem{p.Where.Source, p.Where.Line, p.Where.Column, p.What, p.Try})
	}
	return found
}

// problemsOf takes joined errors apart. One without a place has only its text.
func problemsOf(err error) []problem {
	found := []problem{}
	var bad *config.InvalidError
	switch joined, ok := err.(interface{ Unwrap() []error }); {
	case err == nil:
	case ok:
		for _, e := range joined.Unwrap() {
			found = append(found, problemsOf(e)...)
		}
	case errors.As(err, &bad):
		found = listed(bad.Problems)
	default:
		found = append(found, problem{What: err.Error()})
	}
	return found
}
