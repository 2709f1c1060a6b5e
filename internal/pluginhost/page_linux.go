package pluginhost

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// sealedMemory makes size bytes of memory without a name and maps them. It is sealed at its size, so that a plugin
// cannot shrink it under the host.
func sealedMemory(name string, size int) (*os.File, []byte, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, nil, fmt.Errorf("making memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), name)
	mem, err := seal(fd, size)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, mem, nil
}

func seal(fd, size int) ([]byte, error) {
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return nil, fmt.Errorf("sizing memory: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		return nil, fmt.Errorf("sealing memory: %w", err)
	}
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping memory: %w", err)
	}
	return mem, nil
}

func unmap(mem []byte) error {
	return unix.Munmap(mem) //nolint:wrapcheck // close says what it closes
}
