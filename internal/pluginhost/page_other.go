//go:build !linux

package pluginhost

import (
	"os"

	"github.com/streamd/streamd/internal/pluginhost/process"
)

func sealedMemory(string, int) (*os.File, []byte, error) { return nil, nil, process.ErrUnsupported }

func unmap([]byte) error { return process.ErrUnsupported }
