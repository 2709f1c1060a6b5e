package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/scaffold"
)

func newPluginNew() *cobra.Command {
	return family("new", "Make a new plugin project", newPluginNewHandler())
}

func newPluginNewHandler() *cobra.Command {
	var lang, module, dir string
	cmd := &cobra.Command{
		Use:     "handler NAME",
		Short:   "Make a handler plugin that builds and passes its tests",
		Example: "  streamd plugin new handler --lang go billing\n  cd billing && go test ./... && go build -o billing .",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if lang != "go" {
				return usageError{cmd.CommandPath(), fmt.Errorf("--lang %q is not known; write go", lang)}
			}
			if dir == "" {
				dir = filepath.Base(given[0])
			}
			if err := scaffold.Write(dir, scaffold.Options{Name: given[0], Module: module}); err != nil {
				if _, disk := errors.AsType[*fs.PathError](err); disk {
					return exitcode.With(exitcode.Environment, err)
				}
				return exitcode.With(exitcode.Usage, err)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "made %s; next:\n  cd %s\n  go test ./...\n  go build -o %s . && streamd plugin describe ./%s\n", dir, dir, given[0], given[0])
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&lang, "lang", "go", "language of the plugin")
	f.StringVar(&module, "module", "", "Go module path; default example.com/NAME")
	f.StringVar(&dir, "dir", "", "folder to make; default ./NAME")
	return cmd
}
