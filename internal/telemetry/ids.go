package telemetry

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"
)

// idGenerator makes random ids, and takes the trace id of a root from the context where wantTrace put one.
type idGenerator struct{}

type wantedTrace struct{}

// wantTrace makes the next root span belong to tid.
func wantTrace(ctx context.Context, tid trace.TraceID) context.Context {
	return context.WithValue(ctx, wantedTrace{}, tid)
}

// NewIDs implements the SDK's IDGenerator.
func (g idGenerator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	tid, ok := ctx.Value(wantedTrace{}).(trace.TraceID)
	for !ok || !tid.IsValid() {
		ok = true
		binary.BigEndian.PutUint64(tid[:8], rand.Uint64())
		binary.BigEndian.PutUint64(tid[8:], rand.Uint64())
	}
	return tid, g.NewSpanID(ctx, tid)
}

// NewSpanID implements the SDK's IDGenerator.
func (idGenerator) NewSpanID(context.Context, trace.TraceID) (sid trace.SpanID) {
	for !sid.IsValid() {
		binary.BigEndian.PutUint64(sid[:], rand.Uint64())
	}
	return sid
}
