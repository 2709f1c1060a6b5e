package remote

import (
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// decodeFrame reads a whole frame, prefix included. The command's body aliases it.
func decodeFrame(frame []byte) (*wire.Command, error) {
	cmd := new(wire.Command)
	if err := cmd.Decode(frame[wire.PrefixSize:]); err != nil {
		return nil, err
	}
	return cmd, nil
}

// appendFrame appends the frame of cmd whose body is followed by parts.
func appendFrame(dst []byte, cmd *wire.Command, parts [][]byte) ([]byte, error) {
	size := len(cmd.Body)
	for _, p := range parts {
		size += len(p)
	}
	out, err := wire.AppendHeader(dst, cmd, size)
	if err != nil {
		return dst, err
	}
	out = append(out, cmd.Body...)
	for _, p := range parts {
		out = append(out, p...)
	}
	return out, nil
}
