// Package filelock takes locks of files that the kernel gives back when the process ends, however it ends.
package filelock
