//go:build !linux

package pluginhost

import (
	"os"

	"github.com/streamd/streamd/internal/pluginhost/process"
)

func socketPair(bool) (ours, theirs *os.File, err error) { return nil, nil, process.ErrUnsupported }

func rights(*os.File) []byte { return nil }
