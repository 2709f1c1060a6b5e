package border

import (
	"fmt"
	"strings"
	"unsafe"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// Appender writes itself as one message of exactly Size bytes. *frame.BatchEncoder and *frame.ResultsEncoder are ones.
type Appender interface {
	Size() int
	Append(dst []byte) []byte
}

// Raw is a message that is written already. SendMsg takes it over.
type Raw []byte

// Encoded is a message in a pooled buffer, made by Codec.Encode. SendMsg takes it over and frees it.
type Encoded struct{ buffers mem.BufferSlice }

// Free gives the buffer back when the message will not be sent.
func (e *Encoded) Free() { e.buffers.Free() }

// In receives one frame of a lane: give it to RecvMsg. Frames that internal/frame reads by hand arrive as Message, all
// others as Cold.
type In struct {
	Number  int           // field of the frame's oneof
	Message []byte        // body of a frame of the hot path; memory of its own, which stays valid
	Cold    proto.Message // body of any other frame
	fresh   func() proto.Message
}

// HostFrames returns an In for the plugin's end of a lane, PluginFrames one for the host's end.
func HostFrames() *In { return &In{fresh: func() proto.Message { return new(pluginv1.HostFrame) }} }

// PluginFrames returns an In for the host's end of a lane.
func PluginFrames() *In { return &In{fresh: func() proto.Message { return new(pluginv1.PluginFrame) }} }

// Codec is the gRPC codec of both ends. On the wire it is protobuf, and it says so.
type Codec struct {
	pool     mem.BufferPool
	standard encoding.CodecV2
}

// Name is the content subtype.
func (Codec) Name() string { return "proto" }

// Encode writes a message into a pooled buffer at once, for a sender that must not keep what it is given.
func (c Codec) Encode(a Appender) *Encoded {
	buffer := c.pool.Get(a.Size())
	*buffer = a.Append((*buffer)[:0])
	return &Encoded{buffers: mem.BufferSlice{mem.NewBuffer(buffer, c.pool)}}
}

// Marshal writes what SendMsg was given.
func (c Codec) Marshal(v any) (mem.BufferSlice, error) {
	switch m := v.(type) {
	case *Encoded:
		return m.buffers, nil
	case Raw:
		return mem.BufferSlice{mem.SliceBuffer(m)}, nil
	case Appender:
		return c.Encode(m).buffers, nil
	default:
		return c.standard.Marshal(v)
	}
}

// Unmarshal reads what RecvMsg wants.
func (c Codec) Unmarshal(data mem.BufferSlice, v any) error {
	in, ok := v.(*In)
	if !ok {
		return c.standard.Unmarshal(data, v)
	}
	// The one copy of the receiving end: gRPC's buffers go back to its pool, and bodies stay valid for as long as the
	// author keeps them.
	return in.read(materialize(data))
}

// materialize joins the pieces in memory of its own.
func materialize(data mem.BufferSlice) []byte {
	n := data.Len()
	if n == 0 {
		return nil
	}
	whole := uncleared(n)
	at := 0
	for _, piece := range data {
		at += copy(whole[at:], piece.ReadOnlyData())
	}
	return whole
}

// uncleared is n bytes, at least one, that hold anything: clearing what is overwritten at once would cost a tenth of the whole
// path. It goes through a strings.Builder because that is the one way to get such memory. Nobody else sees the string.
func uncleared(n int) []byte {
	var b strings.Builder
	b.Grow(n)
	b.WriteByte(0)
	return unsafe.Slice(unsafe.StringData(b.String()), n)
}

func (in *In) read(data []byte) error {
	in.Cold = nil
	number, message, ok := frame.One(data)
	if ok && in.hot(number) {
		in.Number, in.Message = number, message
		return nil
	}
	whole := in.fresh()
	if err := proto.Unmarshal(data, whole); err != nil {
		return fmt.Errorf("reading a frame: %w", err)
	}
	reflected := whole.ProtoReflect()
	set := reflected.WhichOneof(reflected.Descriptor().Oneofs().Get(0))
	if set == nil {
		return fmt.Errorf("reading a frame: field %d is none that version %d of the contract knows", number, ProtocolVersion)
	}
	in.Number, in.Message, in.Cold = int(set.Number()), nil, reflected.Get(set).Message().Interface()
	if !in.hot(in.Number) {
		return nil
	}
	// A hot frame in an unusual form, such as a field given twice: write it in the usual one.
	message, err := proto.Marshal(in.Cold)
	if err != nil {
		return fmt.Errorf("reading a frame: %w", err)
	}
	in.Message, in.Cold = message, nil
	return nil
}

// hot tells which frames internal/frame reads. The numbers of the two directions overlap: field 2 is Batch and Credit, 3
// Cancel and Started, 4 Credit and Results; all six are hot.
func (*In) hot(number int) bool { return number >= frame.HostBatch && number <= frame.HostCredit }
