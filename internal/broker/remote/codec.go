package remote

import (
	"strings"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// longHeader is the size from which the texts of a header are not left in it: one that is kept keeps all.
const longHeader = 2 << 10

// decodeFrame reads a whole frame, prefix included. The command's body aliases it.
func decodeFrame(frame []byte) (*wire.Command, error) {
	cmd := new(wire.Command)
	if err := cmd.Decode(frame[wire.PrefixSize:]); err != nil {
		return nil, err
	}
	if len(frame)-len(cmd.Body) > longHeader {
		cmd.Remark = strings.Clone(cmd.Remark)
		for i, f := range cmd.Ext {
			cmd.Ext[i] = wire.Field{Key: strings.Clone(f.Key), Value: strings.Clone(f.Value)}
		}
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
