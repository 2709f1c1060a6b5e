package daemon

import (
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/offsetfile"
	"github.com/streamd/streamd/runtime"
)

// offsetsDir holds the offsets of streams that broadcast, in state_dir.
const offsetsDir = "offsets"

// check holds a config against what the engine and the clients would say of it later, before anything is started, asked for
// or changed (consumer-semantics.md 1.3). It reads the files that the config names, and nothing else. Errors carry their
// exit code.
func check(c *config.Config) error {
	var errs []error
	if err := runtime.CheckStreams(streamConfigs(c)); err != nil {
		errs = append(errs, exitcode.With(exitcode.Usage, err))
	}
	for i := range c.Brokers {
		if _, err := ClientConfig(&c.Brokers[i], slog.New(slog.DiscardHandler)); err != nil {
			errs = append(errs, err) // says which broker
		}
	}
	return errors.Join(append(errs, checkDurable(c, fileSystem))...)
}

// offsets opens the offsets of a stream that broadcasts: runtime.Config.Offsets.
func offsets(c *config.Config, log *slog.Logger) func(*runtime.StreamConfig) (runtime.Offsets, error) {
	return func(s *runtime.StreamConfig) (runtime.Offsets, error) {
		store, err := offsetfile.Open(offsetfile.Options{
			Dir: filepath.Join(c.StateDir, offsetsDir), Member: c.Member, Broker: s.Broker, Group: s.Group, Logger: log.With("stream", s.Name, "group", s.Group),
		})
		if err != nil {
			return nil, exitcode.With(exitcode.Environment, c.Written.Place(advised(err, aboutFolder(err, "state_dir")), "state_dir"))
		}
		return store, nil
	}
}
