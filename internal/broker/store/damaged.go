package store

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// damagedFile says that err, which is of Pebble, comes from a damaged file, and of which one where that is known.
func damagedFile(err error) error {
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
		return fmt.Errorf("%w: its file %s is not as it was written: restore the folder from a backup: %w", ErrDamaged, info.Path, info.Details)
	}
	return fmt.Errorf("%w: restore the folder from a backup: %w", ErrDamaged, err)
}

// onDamage hears that a file turned out to be damaged while it was read. By default Pebble would ask for the end of the
// process. Here whoever reads that place gets an error, each time, and everything else goes on: one bad block is no reason to
// refuse what other queues have. The operator is told once a file.
func (s *Store) onDamage(info pebble.DataCorruptionInfo) {
	if _, known := s.damaged.LoadOrStore(info.Path, true); known {
		return
	}
	s.options.Logger.Error("a file is damaged: what it has cannot be read; restore the folder from a backup",
		"file", info.Path, "error", info.Details.Error())
}
