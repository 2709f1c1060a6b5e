package telemetry

import (
	"encoding/binary"
	"math"

	"go.opentelemetry.io/otel/trace"

	"github.com/streamd/streamd/internal/frame"
)

// parseTraceparent reads a W3C traceparent (version 00, or a later one's first four fields). It allocates nothing: it
// runs for every message. ok is false for anything that is not valid.
func parseTraceparent(v []byte) (tid trace.TraceID, sid trace.SpanID, flags trace.TraceFlags, ok bool) {
	if len(v) < 55 || v[2] != '-' || v[35] != '-' || v[52] != '-' || (len(v) > 55 && (v[0] == '0' && v[1] == '0' || v[55] != '-')) {
		return tid, sid, 0, false
	}
	var version, flag [1]byte
	if !unhex(version[:], v[:2]) || version[0] == 0xff || !unhex(tid[:], v[3:35]) || !unhex(sid[:], v[36:52]) || !unhex(flag[:], v[53:55]) {
		return tid, sid, 0, false
	}
	return tid, sid, trace.TraceFlags(flag[0]) & trace.FlagsSampled, tid.IsValid() && sid.IsValid()
}

// unhex decodes lower-case hexadecimal only, as the W3C text wants.
func unhex(dst, src []byte) bool {
	for i := range dst {
		hi, lo := nibble(src[2*i]), nibble(src[2*i+1])
		if hi > 15 || lo > 15 {
			return false
		}
		dst[i] = hi<<4 | lo
	}
	return true
}

func nibble(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	}
	return 0xff
}

// traceOf derives the ids of a message without a traceparent from its identity: the same in every process, so that all
// attempts meet in one trace wherever they run. Two multiplicative hashes over eight bytes at a time, finished by a mixer:
// cheap, since every message without a traceparent pays for it, and uniform enough for ratio sampling, which a test checks.
func traceOf(identity string) (tid trace.TraceID, root trace.SpanID) {
	a, b := uint64(0xcbf29ce484222325), uint64(0x9e3779b97f4a7c15)^uint64(len(identity))
	for rest := identity; len(rest) > 0; {
		var word [8]byte
		rest = rest[copy(word[:], rest):]
		w := binary.LittleEndian.Uint64(word[:])
		a = (a ^ w) * 0xff51afd7ed558ccd
		a ^= a >> 32
		b = (b ^ w) * 0xc4ceb9fe1a85ec53
		b ^= b >> 29
	}
	binary.BigEndian.PutUint64(tid[:8], mix(a)|1) // never all zero
	binary.BigEndian.PutUint64(tid[8:], mix(b))
	binary.BigEndian.PutUint64(root[:], mix(a^b)|1)
	return tid, root
}

func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// sampled decides for a root as the SDK's TraceIDRatioBased does: by the low eight bytes of the id against a bound.
func sampled(tid trace.TraceID, ratio float64) bool {
	if ratio >= 1 {
		return true
	}
	return binary.BigEndian.Uint64(tid[8:])>>1 < uint64(ratio*float64(math.MaxInt64))
}

// put writes a span context in the form that crosses the border.
func put(sc *[frame.TraceSize]byte, tid trace.TraceID, sid trace.SpanID, flags trace.TraceFlags) {
	copy(sc[:16], tid[:])
	copy(sc[16:24], sid[:])
	sc[24] = byte(flags)
}
