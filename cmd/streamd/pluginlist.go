package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/streamd/streamd/internal/plain"
	"github.com/streamd/streamd/internal/plugintool"
)

func newPluginList() *cobra.Command {
	var (
		cf  configFlags
		out output
		ask bool
	)
	cmd := &cobra.Command{
		Use:   "list -c FILE",
		Short: "List the plugins of a config: binary, checksum, and who uses them",
		Long:  "list looks at the files. With --check it also starts each plugin, and holds the handlers' configs against their schemas.",
		Example: `  streamd plugin list -c streamd.yaml
  streamd plugin list -c streamd.yaml --check -o json`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			loaded, err := cf.load()
			if err != nil {
				return err
			}
			entries, err := plugintool.List(cmd.Context(), loaded.Config, ask)
			if out.json() {
				if printErr := printJSON(cmd.OutOrStdout(), entries); printErr != nil {
					return printErr
				}
				return err
			}
			t := plain.NewTable(cmd.OutOrStdout())
			fmt.Fprintln(t, "PLUGIN\tBINARY\tSTATE\tVERSION\tUSED BY\tCHECKSUM")
			for _, e := range entries {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", e.Name, e.Binary, e.State(), e.Version, e.Users(), e.Checksum)
			}
			if flushErr := t.Flush(); flushErr != nil {
				return flushErr
			}
			return err
		},
	}
	cf.bind(cmd)
	out.bind(cmd)
	cmd.Flags().BoolVar(&ask, "check", false, "start the plugins and check the handlers' configs")
	return cmd
}
