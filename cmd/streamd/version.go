package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/streamd/streamd/internal/buildinfo"
)

func newVersion() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print versions: of streamd, of Go, of the plugin protocol, of the client on the wire",
		Args:  args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := buildinfo.Read()
			if out.json() {
				return printJSON(cmd.OutOrStdout(), v)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "streamd %s\ncommit %s\n%s %s\nplugin protocol %d\nRocketMQ client %s\n", v.Version, v.Commit, v.Go, v.Platform, v.PluginProtocol, v.Client)
			return err
		},
	}
	out.bind(cmd)
	return cmd
}
