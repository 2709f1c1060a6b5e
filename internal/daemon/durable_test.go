package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/exitcode"
)

// A stream that keeps its offsets itself does not start on a folder that may be lost, unless told.
func TestEphemeralStateDirIsRefused(t *testing.T) {
	sure := filepath.Join(string(filepath.Separator), "not", "there", "yet")
	on := func(name string) func(string) (string, error) {
		return func(path string) (string, error) {
			if _, err := os.Stat(path); err != nil {
				t.Errorf("asked for %s, which is not there", path)
			}
			return name, nil
		}
	}
	broken := func(string) (string, error) { return "", errors.New("no answer") }
	for name, c := range map[string]struct {
		dir       string
		ephemeral bool
		model     string
		kind      func(string) (string, error)
		want      string
	}{
		"on a disk":           {sure, false, "broadcasting", on(""), ""},
		"in memory":           {sure, false, "broadcasting", on("tmpfs"), "in memory (tmpfs)"},
		"in a container":      {sure, false, "broadcasting", on(overlay), "layer of a container"},
		"below the temporary": {filepath.Join(t.TempDir(), "state"), false, "broadcasting", on(""), "is below"},
		"nobody knows":        {sure, false, "broadcasting", broken, "no answer"},
		"told":                {sure, true, "broadcasting", on("tmpfs"), ""},
		"clustering":          {sure, false, "clustering", on("tmpfs"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkDurable(&config.Config{StateDir: c.dir, StateEphemeral: c.ephemeral, Streams: []config.Stream{{Name: "other"}, {Name: "prices", Model: c.model}}}, c.kind)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if exitcode.Of(err) != exitcode.Environment || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v (code %d), want %q", err, exitcode.Of(err), c.want)
			}
			for _, say := range []string{"prices", "state_ephemeral: true", c.dir} {
				if name != "nobody knows" && !strings.Contains(err.Error(), say) {
					t.Errorf("%v: does not say %q", err, say)
				}
			}
		})
	}
	if _, err := fileSystem(t.TempDir()); err != nil {
		t.Error(err)
	}
}
