package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/streamd/streamd/internal/buildinfo"
	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/plugintool"
)

func newPlugin() *cobra.Command {
	return family("plugin", "Make, look at and try plugins", newPluginList(), newPluginDescribe(), newPluginTry(), newPluginCheck(), newPluginNew())
}

// binaryFlags say how a plugin binary is started.
type binaryFlags struct {
	env     []string
	timeout time.Duration
	tlsOff  bool
}

func (b *binaryFlags) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVarP(&b.env, "env", "e", nil, "environment of the plugin, NAME=VALUE; repeatable")
	f.DurationVar(&b.timeout, "timeout", 10*time.Second, "time the plugin has to come up")
	f.BoolVar(&b.tlsOff, "tls-off", false, "no TLS between streamd and the plugin")
}

var errEnv = errors.New("--env wants NAME=VALUE")

// plugin reads the flags; given is the binary and its arguments.
func (b *binaryFlags) plugin(cmd *cobra.Command, given []string) (plugintool.Plugin, error) {
	p := plugintool.Plugin{Command: given, Env: map[string]string{}, TLSOff: b.tlsOff, Version: buildinfo.Read().Version, Timeout: b.timeout, TimeoutName: "--timeout"}
	for _, e := range b.env {
		name, value, ok := strings.Cut(e, "=")
		if !ok || name == "" {
			return p, usageError{cmd.CommandPath(), errEnv}
		}
		p.Env[name] = value
	}
	if !strings.Contains(given[0], "/") {
		if _, err := os.Stat(given[0]); err == nil { // a file here, named without ./
			p.Command = append([]string{"." + string(filepath.Separator) + given[0]}, given[1:]...)
		}
	}
	return p, nil
}

func newPluginDescribe() *cobra.Command {
	var (
		bf  binaryFlags
		out output
	)
	cmd := &cobra.Command{
		Use:     "describe BINARY [ARGUMENT...]",
		Short:   "Show what a plugin offers: components, and the keys of their configs",
		Example: "  streamd plugin describe ./bin/billing\n  streamd plugin describe ./bin/billing -o json",
		Args:    args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			p, err := bf.plugin(cmd, given)
			if err != nil {
				return err
			}
			d, err := plugintool.Describe(cmd.Context(), p)
			switch {
			case err != nil:
				return err
			case out.json():
				return printJSON(cmd.OutOrStdout(), d)
			}
			return d.Text(cmd.OutOrStdout())
		},
	}
	bf.bind(cmd)
	out.bind(cmd)
	return cmd
}

func newPluginCheck() *cobra.Command {
	var (
		bf   binaryFlags
		out  output
		file string
		use  string
	)
	cmd := &cobra.Command{
		Use:     "check BINARY [ARGUMENT...]",
		Short:   "Check that a binary is a plugin streamd can run",
		Example: "  streamd plugin check ./bin/billing --config billing.yaml",
		Args:    args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			p, err := bf.plugin(cmd, given)
			if err != nil {
				return err
			}
			conf, err := plugintool.ReadConfig(file)
			if err != nil {
				return err
			}
			report := plugintool.Check(cmd.Context(), p, use, conf)
			if out.json() {
				err = printJSON(cmd.OutOrStdout(), report)
			} else {
				err = report.Text(cmd.OutOrStdout())
			}
			return errors.Join(err, report.Err())
		},
	}
	bf.bind(cmd)
	out.bind(cmd)
	cmd.Flags().StringVar(&file, "config", "", "YAML or JSON file with the component's config")
	cmd.Flags().StringVar(&use, "use", "", "component, when the plugin has several")
	return cmd
}

// openInput opens a file to read, or standard input for "-".
func openInput(cmd *cobra.Command, path string) (*os.File, error) {
	if path == "-" {
		if f, ok := cmd.InOrStdin().(*os.File); ok {
			return f, nil
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, exitcode.With(exitcode.Environment, fmt.Errorf("reading input: %w", err))
	}
	return f, nil
}
