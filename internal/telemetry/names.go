package telemetry

import (
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// Scope is the instrumentation scope of everything streamd emits.
const Scope = "github.com/streamd/streamd"

// Operations, as they stand in messaging.operation.name and at the start of span names.
const (
	operationProcess    = "process"
	operationSendBack   = "send_back"
	operationDeadLetter = "dead_letter"
	operationSend       = "send"
)

// streamd's own attributes: the conventions have no delivery count for RocketMQ and nothing on retries.
const (
	keyAttempt       = attribute.Key("streamd.delivery.attempt")        // 1 = the first
	keyOutcome       = attribute.Key("streamd.delivery.outcome")        // success, retry, dead_letter, untouched, lost
	keyFinal         = attribute.Key("streamd.delivery.final")          // no further attempt follows
	keyPhysicalTopic = attribute.Key("streamd.delivery.physical_topic") // %RETRY%group after the first attempt
	keyQueueOffset   = attribute.Key("streamd.queue.offset")
	keyStream        = attribute.Key("streamd.stream")
	keyHandler       = attribute.Key("streamd.handler")
	keyUniqueKey     = attribute.Key("streamd.message.unique_key") // UNIQ_KEY: what people search by
	keyLinkType      = attribute.Key("streamd.link.type")          // creation, previous_attempt
)

// Values of streamd.delivery.outcome.
const (
	outcomeSuccess    = "success"
	outcomeRetry      = "retry"
	outcomeDeadLetter = "dead_letter"
	outcomeUntouched  = "untouched"
	outcomeLost       = "lost"
)

// Metric names: the messaging conventions' in Prometheus' spelling.
const (
	metricProcessDuration = "messaging_process_duration_seconds"
	metricConsumed        = "messaging_client_consumed_messages_total"
	metricOperation       = "messaging_client_operation_duration_seconds"
	metricSent            = "messaging_client_sent_messages_total"
)

// system and friends are on every span and metric.
func system() []attribute.KeyValue {
	return []attribute.KeyValue{semconv.MessagingSystemKey.String("rocketmq"), semconv.MessagingRocketMQNamespaceKey.String("")}
}

// durationBuckets are the conventions' boundaries in seconds, with three more for long handlers. The SDK's default
// boundaries are made for milliseconds and would put everything under 5 s into one bucket.
func durationBuckets() []float64 {
	return []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 300}
}
