package pluginhost

import (
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
)

// redact takes secrets out of what a plugin said.
func (h *Host) redact(text string) string {
	if h.clean == nil || text == "" {
		return text
	}
	return h.clean(text)
}

// redact takes secrets out of all texts of a plugin's spans.
func (s *traceServer) redact(spans []*trace.Span) {
	for _, span := range spans {
		span.Name = s.clean(span.GetName())
		s.redactAll(span.GetAttributes())
		if st := span.GetStatus(); st != nil {
			st.Message = s.clean(st.GetMessage())
		}
		for _, e := range span.GetEvents() {
			e.Name = s.clean(e.GetName())
			s.redactAll(e.GetAttributes())
		}
		for _, l := range span.GetLinks() {
			s.redactAll(l.GetAttributes())
		}
	}
}

func (s *traceServer) redactAll(attributes []*common.KeyValue) {
	for _, kv := range attributes {
		s.redactValue(kv.GetValue())
	}
}

func (s *traceServer) redactValue(v *common.AnyValue) {
	switch x := v.GetValue().(type) {
	case *common.AnyValue_StringValue:
		x.StringValue = s.clean(x.StringValue)
	case *common.AnyValue_ArrayValue:
		for _, each := range x.ArrayValue.GetValues() {
			s.redactValue(each)
		}
	case *common.AnyValue_KvlistValue:
		s.redactAll(x.KvlistValue.GetValues())
	default: // numbers, truths and bytes are no text
	}
}
