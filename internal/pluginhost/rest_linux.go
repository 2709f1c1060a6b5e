package pluginhost

import "syscall"

// readNow reads from a descriptor that does not block.
func readNow(fd uintptr, b []byte) (int, error) {
	return syscall.Read(int(fd), b) //nolint:wrapcheck // an errno is looked at
}
