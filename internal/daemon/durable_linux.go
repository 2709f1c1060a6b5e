package daemon

import (
	"fmt"
	"syscall"
)

// fileSystem names the file system of a path when what is there may be lost; else it is empty (magic numbers of statfs(2)).
func fileSystem(path string) (string, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return "", fmt.Errorf("statfs %s: %w", path, err)
	}
	switch uint32(s.Type) { //nolint:gosec // a magic number of 32 bits, whatever the field's type
	case 0x01021994:
		return "tmpfs", nil
	case 0x858458f6:
		return "ramfs", nil
	case 0x794c7630:
		return overlay, nil
	}
	return "", nil
}
