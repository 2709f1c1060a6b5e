package wire

// Compression is the method by which a producer made a body smaller (remoting-protocol.md 4.3).
type Compression uint8

// The methods, as they stand in sysFlag. CompressionUntyped is what producers without the type bits set, the Go client
// among them; it is zlib.
const (
	CompressionUntyped Compression = 0
	CompressionLZ4     Compression = 1 // frame format
	CompressionZstd    Compression = 2
	CompressionZlib    Compression = 3
)

const compressionShift = 8

// Compression returns the method of a compressed body; it means nothing when IsCompressed is false.
func (m *Message) Compression() Compression {
	return Compression(m.SysFlag & SysFlagCompression >> compressionShift)
}

// SysFlag returns the bits that say a body is compressed with c.
func (c Compression) SysFlag() int32 { return SysFlagCompressed | int32(c)<<compressionShift }

// String returns the method's name.
func (c Compression) String() string {
	switch c {
	case CompressionUntyped, CompressionZlib:
		return "zlib"
	case CompressionLZ4:
		return "lz4"
	case CompressionZstd:
		return "zstd"
	}
	return "unknown"
}
