package telemetry

import (
	"slices"
	"strings"
	"testing"
)

func TestWithEnv(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		env  map[string]string
		want func(Config) bool
		err  string
	}{
		{name: "nothing set exports nothing", want: func(c Config) bool { return len(c.Exporters) == 0 && c.SampleRatio == 0.01 }},
		{name: "an endpoint means otlp", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317"}, want: func(c Config) bool { return slices.Equal(c.Exporters, []string{"otlp"}) }},
		{name: "a list", env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp, console"}, want: func(c Config) bool { return slices.Equal(c.Exporters, []string{"otlp", "console"}) }},
		{name: "none wins over an endpoint", env: map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:1"}, want: func(c Config) bool { return len(c.Exporters) == 0 }},
		{name: "disabled", env: map[string]string{"OTEL_SDK_DISABLED": "TRUE"}, want: func(c Config) bool { return c.Disabled }},
		{name: "ratio", env: map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.5"}, want: func(c Config) bool { return c.SampleRatio == 0.5 }},
		{name: "always on", env: map[string]string{"OTEL_TRACES_SAMPLER": "always_on"}, want: func(c Config) bool { return c.SampleRatio == 1 }},
		{name: "bad ratio", env: map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "2"}, err: "from 0 to 1"},
		{name: "unknown exporter", env: map[string]string{"OTEL_TRACES_EXPORTER": "jaeger"}, err: `"jaeger": write otlp, console or none`},
		{name: "unknown protocol", env: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, err: "grpc or http/protobuf"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := WithEnv(Config{SampleRatio: 0.01}, func(k string) string { return c.env[k] })
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || !c.want(got) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
