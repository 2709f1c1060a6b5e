package telemetry

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Config says where traces go and how many. The zero value exports nothing; metrics are always at /metrics.
type Config struct {
	ServiceName    string
	ServiceVersion string
	InstanceID     string // service.instance.id
	Exporters      []string
	Protocol       string // "grpc" or "http/protobuf"
	Endpoint       string // URL; empty = the exporter's default, which also reads OTEL_EXPORTER_OTLP_...
	SampleRatio    float64
	// NoParent makes attempts new roots that link to the creation context instead of children of it.
	NoParent bool
	// StateDir holds the links to previous attempts over a restart; empty = in memory only.
	StateDir string
	Disabled bool
}

// The exporters that Config.Exporters may name.
const (
	ExporterOTLP    = "otlp"
	ExporterConsole = "console"
	exporterNone    = "none"
)

// WithEnv returns a config with the OTEL_ variables laid over it, which win over a file as for every OpenTelemetry
// program: OTEL_SDK_DISABLED, OTEL_SERVICE_NAME, OTEL_TRACES_EXPORTER (a list), OTEL_EXPORTER_OTLP_PROTOCOL,
// OTEL_EXPORTER_OTLP_[TRACES_]ENDPOINT, OTEL_TRACES_SAMPLER[_ARG].
func WithEnv(c Config, getenv func(string) string) (Config, error) {
	c.Disabled = c.Disabled || strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true")
	if v := getenv("OTEL_SERVICE_NAME"); v != "" {
		c.ServiceName = v
	}
	if v := first(getenv, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); v != "" {
		c.Protocol = v
	}
	endpoint := first(getenv, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	if endpoint != "" {
		c.Endpoint = "" // the exporter reads the variables itself, and knows their rules about paths
		if len(c.Exporters) == 0 {
			c.Exporters = []string{ExporterOTLP}
		}
	}
	if v := getenv("OTEL_TRACES_EXPORTER"); v != "" {
		c.Exporters = nil
		for name := range strings.SplitSeq(v, ",") {
			c.Exporters = append(c.Exporters, strings.TrimSpace(name))
		}
	}
	if err := c.readSampler(getenv("OTEL_TRACES_SAMPLER"), getenv("OTEL_TRACES_SAMPLER_ARG")); err != nil {
		return c, err
	}
	return c, c.validate()
}

func first(getenv func(string) string, names ...string) string {
	for _, n := range names {
		if v := getenv(n); v != "" {
			return v
		}
	}
	return ""
}

func (c *Config) readSampler(name, arg string) error {
	switch strings.TrimPrefix(name, "parentbased_") {
	case "":
		return nil
	case "always_on":
		c.SampleRatio = 1
	case "always_off":
		c.SampleRatio = 0
	case "traceidratio":
		ratio, err := strconv.ParseFloat(arg, 64)
		if err != nil || ratio < 0 || ratio > 1 {
			return fmt.Errorf("OTEL_TRACES_SAMPLER_ARG=%q: write a number from 0 to 1", arg)
		}
		c.SampleRatio = ratio
	default:
		return fmt.Errorf("OTEL_TRACES_SAMPLER=%q: write parentbased_traceidratio, parentbased_always_on or parentbased_always_off", name)
	}
	return nil
}

func (c *Config) validate() error {
	c.Exporters = slices.DeleteFunc(c.Exporters, func(e string) bool { return e == exporterNone || e == "" })
	for _, e := range c.Exporters {
		if e != ExporterOTLP && e != ExporterConsole {
			return fmt.Errorf("traces exporter %q: write otlp, console or none", e)
		}
	}
	switch c.Protocol {
	case "":
		c.Protocol = "grpc"
	case "grpc", "http/protobuf":
	default:
		return fmt.Errorf("OTLP protocol %q: write grpc or http/protobuf", c.Protocol)
	}
	if c.Endpoint != "" {
		if u, err := url.Parse(c.Endpoint); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return fmt.Errorf("OTLP endpoint %q: write a URL such as http://127.0.0.1:4317", c.Endpoint)
		}
	}
	if c.SampleRatio < 0 || c.SampleRatio > 1 {
		return fmt.Errorf("sample ratio %v: write a number from 0 to 1", c.SampleRatio)
	}
	return nil
}
