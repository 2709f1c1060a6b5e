//go:build !linux

package daemon

// fileSystem knows no file system that may be lost on such a system.
func fileSystem(string) (string, error) { return "", nil }
