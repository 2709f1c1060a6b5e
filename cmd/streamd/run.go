package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/streamd/streamd/internal/buildinfo"
	"github.com/streamd/streamd/internal/daemon"
)

func newRun() *cobra.Command {
	var cf configFlags
	cmd := &cobra.Command{
		Use:   "run -c FILE",
		Short: "Consume: join the groups of a config and hand messages to its handlers",
		Long: `run starts everything a config names and goes on until it is told to stop.

Signals: the first SIGTERM or SIGINT drains within shutdown_timeout and then exits with 0; a second one stops at once.
SIGHUP reads the config again and applies what changed; a bad config never replaces a good one.

With --dev no cluster is needed, and none is touched: an embedded broker takes the place of each one that the config or
NAMESRV_ADDR names, with empty data that goes with this process, short delay levels, and the topics that the streams
subscribe to. What was replaced is said.`,
		Example: `  streamd run -c streamd.yaml
  streamd run -c /etc/streamd/conf.d --overlay prod.yaml --set streams[orders].batch.max=64
  streamd run --dev -c streamd.yaml`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("finding streamd's own binary, which serves the strategies: %w", err)
			}
			signals := make(chan os.Signal, 4)
			signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer signal.Stop(signals)
			err = daemon.Run(cmd.Context(), daemon.Options{
				Load: cf.load, Log: cmd.ErrOrStderr(), Version: buildinfo.Read().Version, Executable: self, Signals: signals,
			})
			if _, logged := errors.AsType[*daemon.LoggedError](err); logged {
				return &shown{err}
			}
			return err
		},
	}
	cf.bind(cmd)
	cf.bindDev(cmd)
	return cmd
}
