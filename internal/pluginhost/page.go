package pluginhost

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/streamd/streamd/internal/frame"
)

const (
	maxLanes = 64  // lanes of one process
	rowSlots = 256 // records of one lane that can be told apart as running; beyond that all in flight are suspects
)

// sharedPage is memory without a name that host and plugin both map.
type sharedPage struct {
	page *frame.Page
	file *os.File
	mem  []byte
	once sync.Once
}

func newSharedPage() (*sharedPage, error) {
	file, mem, err := sealedMemory("streamd-running", frame.PageSize(maxLanes, rowSlots))
	if err != nil {
		return nil, fmt.Errorf("making the shared page: %w", err)
	}
	s := &sharedPage{file: file, mem: mem}
	if s.page, err = frame.InitPage(mem, maxLanes, rowSlots); err != nil {
		return nil, errors.Join(fmt.Errorf("making the shared page: %w", err), s.close())
	}
	return s, nil
}

// close frees the memory; the page must not be used any more.
func (s *sharedPage) close() (err error) {
	s.once.Do(func() { err = errors.Join(unmap(s.mem), s.file.Close()) })
	return err
}
