//go:build unix

package serve

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/streamd/streamd/internal/border"
	"github.com/streamd/streamd/internal/frame"
)

// openPage maps the shared page that the host passed; nil when it passed none.
func openPage() (*frame.Page, error) {
	value := os.Getenv(border.EnvPageFD)
	if value == "" {
		return nil, nil //nolint:nilnil // no page is a valid answer
	}
	fd, err := strconv.Atoi(value)
	if err != nil {
		return nil, fmt.Errorf("reading %s=%q: %w", border.EnvPageFD, value, err)
	}
	syscall.CloseOnExec(fd) // what the author starts must not write to it
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("looking at descriptor %d of the shared page: %w", fd, err)
	}
	mem, err := syscall.Mmap(fd, 0, int(st.Size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping the shared page: %w", err)
	}
	return frame.OpenPage(mem)
}
