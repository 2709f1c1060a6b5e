package main

import (
	"github.com/spf13/cobra"

	"github.com/streamd/streamd/internal/buildinfo"
	"github.com/streamd/streamd/internal/firstparty"
	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/serve"
)

func newServePlugin() *cobra.Command {
	cmd := family("serve-plugin", "Serve a plugin that is part of streamd; streamd starts it by itself", &cobra.Command{
		Use:   "allocate",
		Short: "Serve the built-in strategies",
		Args:  args(cobra.NoArgs),
		Run: func(*cobra.Command, []string) {
			serve.Main(sdk.Info{Name: firstparty.PluginName, Version: buildinfo.Read().Version}, firstparty.Specs()...)
		},
	})
	cmd.Hidden = true
	return cmd
}
