package store

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// checkForeign refuses a folder that is not a store's and has something in it: it was hardly meant. A folder that is a store's
// may have other things in it too.
func checkForeign(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return plainly(err)
	}
	foreign := ""
	for _, name := range names {
		switch {
		case isOurs(name):
			return nil
		case name == lockName || name == "lost+found" || strings.HasPrefix(name, "."):
			// A lock alone says nothing. A disk's own folder, and what systems leave everywhere, do not count.
		case slices.Contains([]string{openingName, syncedName, syncedName + temporary}, name):
			// A first start that was killed early leaves nothing else.
		case foreign == "" || name < foreign:
			foreign = name
		}
	}
	if foreign != "" {
		return fmt.Errorf("%w: it has %s, and nothing of a broker: choose an empty folder, or one that is not there yet", ErrForeign, foreign)
	}
	return nil
}

// lockName is the file that is locked while a folder is in use.
const lockName = "LOCK"

// isOurs tells a name that files of a store have.
func isOurs(name string) bool {
	for _, prefix := range []string{"MANIFEST-", "OPTIONS-", "marker."} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	if _, ok := segmentOf(name); ok {
		return true
	}
	number, kind, _ := strings.Cut(name, ".")
	return kind == "log" && len(number) == 6 && strings.Trim(number, "0123456789") == ""
}
