package main

import (
	"github.com/spf13/cobra"

	"github.com/streamd/streamd/internal/config"
)

func newConfig() *cobra.Command {
	return family("config", "Show the effective config, the schema, the reference", newConfigPrint(), newConfigSchema(), newConfigReference())
}

func newConfigPrint() *cobra.Command {
	var (
		cf  configFlags
		out output
		ask bool
	)
	cmd := &cobra.Command{
		Use:     "print -c FILE",
		Short:   "Print the effective config: merged, defaults filled in, secrets redacted",
		Long:    "print hides what was injected into a plugin's config, and streamd's own secrets. What a component's schema calls secret\nis known to the plugin alone: --plugins starts it to ask.",
		Example: "  streamd config print -c streamd.yaml --set log.level=debug",
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			loaded, err := cf.load()
			if err != nil {
				return err
			}
			if ask {
				if loaded, err = askPlugins(cmd.Context(), loaded); err != nil {
					return err // what could not be asked could not be hidden
				}
			}
			if !out.json() {
				return printConfig(cmd, loaded)
			}
			doc, err := loaded.JSON()
			if err != nil {
				return err
			}
			return printJSON(cmd.OutOrStdout(), doc)
		},
	}
	cf.bind(cmd)
	out.bind(cmd)
	cmd.Flags().BoolVar(&ask, "plugins", false, "start the plugins, to hide what their schemas call secret")
	return cmd
}

func newConfigSchema() *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of config files, for editors",
		Example: "  streamd config schema > streamd.schema.json",
		Args:    args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return printSchema(cmd) },
	}
}

func newConfigReference() *cobra.Command {
	return &cobra.Command{
		Use:   "reference",
		Short: "Print every key with its default, as Markdown",
		Args:  args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(config.Reference())
			return err
		},
	}
}
