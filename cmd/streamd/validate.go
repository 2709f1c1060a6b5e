package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/streamd/streamd/internal/config"
)

// validation is what validate -o json prints.
type validation struct {
	OK       bool      `json:"ok"`
	Files    []string  `json:"files,omitempty"`
	Problems []problem `json:"problems"`
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
		cf           configFlags
		out          output
		show, schema bool
	)
	cmd := &cobra.Command{
		Use:   "validate -c FILE",
		Short: "Check a config without starting anything",
		Long:  "validate reads, merges and checks a config and tells every problem with its place. It connects to nothing and\nstarts nothing; \"streamd plugin list --check\" asks the plugins.",
		Example: `  streamd validate -c streamd.yaml
  streamd validate -c conf.d --overlay prod.yaml --print
  streamd validate --schema > streamd.schema.json`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if schema {
				return printSchema(cmd)
			}
			loaded, err := cf.load()
			switch {
			case out.json():
				return printValidation(cmd, loaded, err)
			case err != nil:
				return err
			case show:
				return printConfig(cmd, loaded)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "ok: %d streams, %d handlers, %d plugins\n", len(loaded.Config.Streams), len(loaded.Config.Handlers), len(loaded.Config.Plugins))
			return nil
		},
	}
	cf.bind(cmd)
	out.bind(cmd)
	cmd.Flags().BoolVar(&show, "print", false, "print the effective config, secrets redacted")
	cmd.Flags().BoolVar(&schema, "schema", false, "print the JSON Schema of config files")
	return cmd
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

// printValidation prints the outcome as JSON. The exit code is that of the text form.
func printValidation(cmd *cobra.Command, loaded *config.Loaded, err error) error {
	v := validation{OK: err == nil, Problems: []problem{}}
	var bad *config.InvalidError
	switch {
	case loaded != nil:
		v.Files = loaded.Files
	case errors.As(err, &bad):
		for _, p := range bad.Problems {
			v.Problems = append(v.Problems, problem{p.Where.Source, p.Where.Line, p.Where.Column, p.What, p.Try})
		}
	default:
		v.Problems = append(v.Problems, problem{What: err.Error()})
	}
	if printErr := printJSON(cmd.OutOrStdout(), v); printErr != nil {
		return printErr
	}
	if err != nil {
		return &shown{err}
	}
	return nil
}
