//go:build linux

package process_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/streamd/streamd/internal/pluginhost/process"
)

// Each repair of a file changes its stamp; looking does not.
func TestLook_seesRepairs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, next := filepath.Join(dir, "plugin"), filepath.Join(dir, "next")
	write := func(path string) error { return os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600) }
	last := process.Look(path)
	if last != (process.Stamp{}) {
		t.Errorf("there is none, and it has the stamp %+v", last)
	}
	for _, change := range []struct {
		what string
		do   func() error
	}{
		{"it comes", func() error { return write(path) }},
		{"chmod +x", func() error { return os.Chmod(path, 0o700) }},
		{"it is written anew", func() error { return os.WriteFile(path, []byte("#!/bin/sh\nexit 0\n"), 0o600) }},
		{"a copy has its next name", func() error { return write(next) }},
		{"a copy takes its place", func() error { return os.Rename(next, path) }},
		{"it goes", func() error { return os.Remove(path) }},
	} {
		if err := change.do(); err != nil {
			t.Fatal(err)
		}
		now := process.Look(path)
		if same := now == last; same != (change.what == "a copy has its next name") {
			t.Errorf("%s: %+v became %+v", change.what, last, now)
		}
		if again := process.Look(path); again != now {
			t.Errorf("%s: the next look saw %+v after %+v", change.what, again, now)
		}
		last = now
	}
	if process.Look("sh") == (process.Stamp{}) || process.Look("no-such-program") != (process.Stamp{}) {
		t.Error("a name is not looked up in PATH")
	}
}

// What is looked at is another file once it is there and rests.
func TestWatch_waitsUntilItRests(t *testing.T) {
	t.Parallel()
	old, half, whole := process.Look(writeFile(t, "old", 0o700)), process.Look(writeFile(t, "ha", 0o700)), process.Look(writeFile(t, "half", 0o700))
	var missing process.Stamp
	for name, tc := range map[string]struct {
		seen  process.Stamp
		looks []process.Stamp
		at    int // the look that tells; -1: none does
	}{
		"the same":      {old, []process.Stamp{old, old, old}, -1},
		"another":       {old, []process.Stamp{old, whole, whole}, 2},
		"at once":       {old, []process.Stamp{whole, whole}, 1},
		"copied":        {old, []process.Stamp{half, whole, half, whole, whole}, 4},
		"gone":          {old, []process.Stamp{missing, missing, missing}, -1},
		"there again":   {old, []process.Stamp{missing, old, old, old}, -1},
		"replaced late": {old, []process.Stamp{missing, missing, whole, whole}, 3},
		"still missing": {missing, []process.Stamp{missing, missing}, -1},
		"it comes":      {missing, []process.Stamp{missing, old, old}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, at := process.NewWatch(tc.seen), -1
			for i, stamp := range tc.looks {
				if w.Another(stamp) && at < 0 {
					at = i
				}
			}
			if at != tc.at {
				t.Errorf("told at look %d, want %d", at, tc.at)
			}
		})
	}
}
