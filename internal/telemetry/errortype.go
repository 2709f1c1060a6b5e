package telemetry

import (
	"context"
	"errors"
	"net"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// errorType is the low-cardinality class of an error for error.type; empty for nil. Errors that know their class say so
// with a method ErrorType() string, as the conventions' package asks.
func errorType(err error) string {
	var timeout net.Error
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "TIMEOUT"
	case errors.Is(err, context.Canceled):
		return "CANCELED"
	}
	return semconv.ErrorType(err).Value.AsString()
}
