package border

import (
	"errors"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the standard codec that Codec falls back to
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/mem"
)

// Sizes of a connection, the same at both ends. Both windows must be set, else gRPC pins the other at 64 KiB.
const (
	streamWindow     = 4 << 20
	connectionWindow = 8 << 20
	ioBuffer         = 256 << 10
	socketBuffer     = 1 << 20 // most kernels give 208 KiB, which is less than one batch may have
	// MaxMessage bounds one frame in both directions; gRPC's own default of 4 MiB is less than a large message.
	MaxMessage = 64 << 20
)

// Link is one end's codec and tuning. Each process makes its own: pools are not shared through package state.
type Link struct {
	Codec Codec
	pool  mem.BufferPool
}

// NewLink makes the codec and its buffer pool.
func NewLink() (*Link, error) {
	standard := encoding.GetCodecV2("proto")
	if standard == nil {
		return nil, errors.New("gRPC has no protobuf codec")
	}
	pool := &bufferPool{}
	return &Link{pool: pool, Codec: Codec{pool: pool, standard: standard}}, nil
}

// ServerOptions are for the plugin's gRPC server.
func (l *Link) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(l.Codec),
		grpc.InitialWindowSize(streamWindow),
		grpc.InitialConnWindowSize(connectionWindow),
		grpc.ReadBufferSize(ioBuffer),
		grpc.WriteBufferSize(ioBuffer),
		grpc.MaxRecvMsgSize(MaxMessage),
		grpc.MaxSendMsgSize(MaxMessage),
		experimental.BufferPool(l.pool),
	}
}

// DialOptions are for the host's gRPC client.
func (l *Link) DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(l.Codec), grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
		grpc.WithInitialWindowSize(streamWindow),
		grpc.WithInitialConnWindowSize(connectionWindow),
		grpc.WithReadBufferSize(ioBuffer),
		grpc.WithWriteBufferSize(ioBuffer),
		grpc.WithDisableRetry(), // a lane is never replayed by the transport
		experimental.WithBufferPool(l.pool),
	}
}

// Widen gives the host's end of a connection room for several batches: else each large one is written in pieces, with a
// wait for the plugin between them. A kernel that grants less takes what it grants.
func Widen(conn net.Conn) error {
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return nil
	}
	if err := unix.SetWriteBuffer(socketBuffer); err != nil {
		return fmt.Errorf("widening the socket: %w", err)
	}
	return nil
}
