package remoting

import "github.com/streamd/streamd/internal/rocketmq/wire"

// encode returns the frame of cmd in a pooled buffer.
func encode(pool *Buffers, cmd *wire.Command) (*buffer, error) {
	const fixed, perField = 256, 16 // room for the fixed members, and for quotes and escapes
	size := fixed + len(cmd.Remark) + len(cmd.Body)
	for _, f := range cmd.Ext {
		size += len(f.Key) + len(f.Value) + perField
	}
	buf := pool.get(min(size, maxFrame))
	b, err := wire.AppendFrame(buf.b[:0], cmd)
	if err != nil {
		pool.put(buf)
		return nil, err
	}
	buf.b = b
	return buf, nil
}

// decode reads a frame, prefix included. The body aliases it; everything else is copied.
func decode(frame []byte) (*wire.Command, error) {
	cmd := new(wire.Command)
	if err := cmd.Decode(frame[wire.PrefixSize:]); err != nil {
		return nil, err
	}
	return cmd, nil
}
