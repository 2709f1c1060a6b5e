package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/exitcode"
)

// checkDurable refuses a state_dir that goes with the container or the next boot, when a stream keeps its offsets there:
// without them it begins where start_from says, and nobody would notice what was passed over. kind tells the file system
// of a path: fileSystem.
func checkDurable(c *config.Config, kind func(path string) (string, error)) error {
	if c.StateEphemeral {
		return nil
	}
	for i := range c.Streams {
		s := &c.Streams[i]
		if !s.Broadcasts() {
			continue
		}
		why, err := ephemeral(c.StateDir, kind)
		switch {
		case err != nil:
			return exitcode.With(exitcode.Environment, c.Written.Place(fmt.Errorf("looking at state_dir: %w", err), "state_dir"))
		case why != "":
			return exitcode.With(exitcode.Environment, c.Written.Place(fmt.Errorf("state_dir %s %s, and stream %s (model: broadcasting) keeps its offsets there: "+
				"write a state_dir on a disk or a volume that outlives restarts; or state_ephemeral: true, when start_from may apply anew after each loss of the folder",
				c.StateDir, why, s.Name), "state_dir"))
		}
		return nil
	}
	return nil
}

// ephemeral says why a folder may be lost; empty when nothing speaks for it. The folder need not be there yet.
func ephemeral(dir string, kind func(string) (string, error)) (why string, err error) {
	at, err := existing(dir)
	if err != nil {
		return "", err
	}
	for _, temporary := range []string{os.TempDir(), "/tmp"} {
		if root, err := filepath.EvalSymlinks(temporary); err == nil && (at == root || strings.HasPrefix(at, root+string(filepath.Separator))) {
			return "is below " + temporary + ", which is emptied at any time", nil
		}
	}
	switch fileSystem, err := kind(at); {
	case err != nil:
		return "", err
	case fileSystem == overlay:
		return "is in the layer of a container (overlay), which goes with it", nil
	case fileSystem != "":
		return "is in memory (" + fileSystem + "), which a reboot empties", nil
	}
	return "", nil
}

// existing is the path itself, or the nearest folder above it that is there, without symbolic links.
func existing(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for {
		found, err := filepath.EvalSymlinks(path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
			return found, err
		}
		path = filepath.Dir(path)
	}
}

// overlay is a container's own layer to fileSystem.
const overlay = "overlay"
