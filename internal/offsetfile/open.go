package offsetfile

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"path/filepath"
	"time"

	"github.com/streamd/streamd/sdk"
)

// The names beside a file's own.
const (
	backupSuffix  = ".bak"     // the state before
	newSuffix     = ".new"     // the state to come, while it is written
	damagedSuffix = ".damaged" // what could not be read when the backup was taken instead
)

// Options says whose offsets a store keeps, and where.
type Options struct {
	Dir                   string
	Member, Broker, Group string        // as configured
	Pause                 time.Duration // between two writes; 0 = 100 ms
	Files                 Files         // nil = the machine's
	Logger                *slog.Logger
	Now                   func() time.Time // nil = time.Now
}

const defaultPause = 100 * time.Millisecond

// Path is the file of a member's offsets. Each name stands in it as in a URL's query, so that none can leave the folder or
// look like another.
func Path(dir, member, broker, group string) string {
	return filepath.Join(dir, url.QueryEscape(member)+"@"+url.QueryEscape(broker)+"@"+url.QueryEscape(group)+".json")
}

// DamagedError says that a member's position cannot be read, and what to do.
type DamagedError struct {
	Path        string
	Why, Backup error // what is wrong with the file, and with its backup
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the offsets of this member cannot be read, and none are guessed: %s: %v; its backup %s: %v. "+
		"Put a good copy of one of them in its place; or move both away: then the stream's start_from says where this member begins, "+
		"and what it had not handled before that is passed over", e.Path, e.Why, e.Path+backupSuffix, e.Backup)
}

// Unwrap gives the causes.
func (e *DamagedError) Unwrap() []error { return []error{e.Why, e.Backup} }

// Open reads a member's offsets; a member that has no file has none. The backup takes the place of a file that is damaged or
// gone. The error is a *DamagedError when neither can be read; others name the file and say what is wrong with it.
func Open(o Options) (*Store, error) {
	if o.Files == nil {
		o.Files = disk{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Pause == 0 {
		o.Pause = defaultPause
	}
	if err := o.Files.MkdirAll(o.Dir); err != nil {
		return nil, fmt.Errorf("making the folder of the offsets: %w", err)
	}
	if err := o.Files.SyncDir(filepath.Dir(o.Dir)); err != nil {
		return nil, fmt.Errorf("syncing the folder above the offsets': %w", err)
	}
	s := &Store{options: o, path: Path(o.Dir, o.Member, o.Broker, o.Group), offsets: map[sdk.Queue]int64{}, next: newRound()}
	if err := s.load(); err != nil {
		return nil, err
	}
	return s, nil
}

// load reads the file, or its backup.
func (s *Store) load() error {
	offsets, why := s.read(s.path)
	if why == nil {
		s.offsets = offsets
		return nil
	}
	gone := errors.Is(why, fs.ErrNotExist)
	var access *fs.PathError
	switch {
	case final(why):
		return fmt.Errorf("the offsets of this member: %s: %w; run the streamd, or the member, that wrote it, or give this one another name or state_dir", s.path, why)
	case errors.As(why, &access) && !gone:
		return fmt.Errorf("reading the offsets of this member: %w", why)
	}
	offsets, bad := s.read(s.path + backupSuffix)
	switch {
	case bad == nil:
	case gone && errors.Is(bad, fs.ErrNotExist):
		return nil // a member without a past
	default:
		return &DamagedError{s.path, why, bad}
	}
	log := s.options.Logger.With("file", s.path, "error", why)
	if gone {
		log.Warn("the file of this member's offsets is gone and its backup is used: what was handled since it was written comes again; to begin anew, remove both")
	} else {
		aside := s.path + damagedSuffix
		if err := s.options.Files.Rename(s.path, aside); err != nil {
			return fmt.Errorf("keeping the damaged %s aside: %w", s.path, err)
		}
		log.Error("the file of this member's offsets is damaged and its backup is used: what was handled since it was written comes again", "kept_as", aside)
	}
	s.offsets = offsets
	s.version++ // the next commit writes all of it, whatever it brings
	return nil
}

func (s *Store) read(path string) (map[sdk.Queue]int64, error) {
	text, err := s.options.Files.ReadFile(path)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the file
	}
	return decode(&s.options, text)
}

// final tells a file that is sound and not ours: no backup stands in for it.
func final(why error) bool {
	var newer *newerError
	var other *otherError
	return errors.As(why, &newer) || errors.As(why, &other)
}
