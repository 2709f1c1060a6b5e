package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/internal/broker/sql92"
	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/uses"
)

// configFlags are the flags of commands that load a config.
type configFlags struct {
	paths, overlays, set []string
	flags                *pflag.FlagSet
	dev                  bool
	devData              string
}

// overrides are the keys that have a flag of their own.
func overrides() map[string]string {
	return map[string]string{
		"log-level": "log.level", "log-format": "log.format", "state-dir": "state_dir", "member": "member",
		"admin-listen": "admin.listen", "health-listen": "health.listen", "shutdown-timeout": "shutdown_timeout",
	}
}

func (c *configFlags) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	c.flags = f
	f.StringArrayVarP(&c.paths, "config", "c", nil, "config file or directory; several are merged in this order")
	f.StringArrayVar(&c.overlays, "overlay", nil, "file that changes entries by name, after all others are merged; null takes a key away")
	f.StringArrayVar(&c.set, "set", nil, "sets one value, for instance streams[orders].batch.max=64")
	for name, key := range overrides() {
		f.String(name, "", "overrides "+key)
	}
}

// devListen is where the broker of run --dev listens, or at the next free port.
const devListen = "127.0.0.1:9876"

// bindDev adds --dev, for commands that run what they load.
func (c *configFlags) bindDev(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.dev, "dev", false, "for development: embedded brokers in the place of those of the config, with empty data of their own")
	cmd.Flags().StringVar(&c.devData, "dev-data", "", "folder for the data of --dev, so that it outlives the process; default: in memory")
}

// options reads what was given.
func (c *configFlags) options() config.Options {
	opts := config.Options{Paths: c.paths, Overlays: c.overlays, Set: c.set, Strategies: allocate.Names(), SQL: readSQL}
	if c.dev {
		opts.Dev = &config.Dev{Listen: devListen, DataDir: c.devData}
	}
	c.flags.Visit(func(f *pflag.Flag) {
		if key, ok := overrides()[f.Name]; ok {
			opts.Flags = append(opts.Flags, config.Flag{Key: key, Name: "--" + f.Name, Value: f.Value.String()})
		}
	})
	for i, s := range opts.Set {
		opts.Set[i] = strings.TrimSpace(s)
	}
	return opts
}

// readSQL says what is wrong with an SQL92 expression.
func readSQL(expression string) error {
	_, err := sql92.Parse(expression)
	return err
}

func (c *configFlags) load() (*config.Loaded, error) {
	if c.devData != "" && !c.dev {
		return nil, exitcode.With(exitcode.Usage, errDevData)
	}
	loaded, err := config.Load(c.options())
	if err != nil {
		return nil, err
	}
	return loaded, uses.CheckBuiltin(loaded.Config)
}

var errDevData = errors.New("--dev-data says where --dev keeps its data, and --dev is not there; try both")
