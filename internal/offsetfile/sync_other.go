//go:build !unix

package offsetfile

// syncDir does nothing: there are no folders to be synced on such a system.
func syncDir(string) error { return nil }
