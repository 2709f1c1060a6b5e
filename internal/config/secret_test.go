package config_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/streamd/streamd/internal/config"
)

func TestInterpolationAndRedaction(t *testing.T) {
	t.Setenv("POD", "streamd-0")
	t.Setenv("N", "7")
	t.Setenv("TRICK", "x, y: [1]\n# \"")
	t.Setenv("EMPTY", "")
	secret := write(t, "secret", "pa55word\n")
	text := `
brokers: [{name: main, name_servers: ["127.0.0.1:9876"]}]
plugins:
  - name: acme
    command: [./acme]
    env: {PASSWORD: "${file:` + secret + `}", LITERAL: topsecret, N: "${env:N}"}
handlers:
  - name: billing
    config: {token: "${env:TRICK}", count: "${env:N}", escaped: "$${env:N}", missing: "${env:NOPE:-fall:back}", empty: "[${env:EMPTY}]"}
streams: [{name: orders, group: billing, subscribe: [{topic: Orders}], concurrency: "${env:N}", deadline: "${env:N}s"}]
member: ${env:POD}
`
	l := load(t, config.Options{Paths: []string{write(t, "s.yaml", text)}})
	c := l.Config
	if c.Member != "streamd-0" || c.Streams[0].Concurrency != 7 || c.Streams[0].Deadline.String() != "7s" {
		t.Errorf("member %q, stream %+v", c.Member, c.Streams[0].Policies)
	}
	if d := cmp.Diff(map[string]string{"PASSWORD": "pa55word", "LITERAL": "topsecret", "N": "7"}, c.Plugins[0].Env); d != "" {
		t.Error(d)
	}
	var got map[string]any
	if err := json.Unmarshal(c.Handlers[0].Config.JSON(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"token": "x, y: [1]\n# \"", "count": "7", "escaped": "${env:N}", "missing": "fall:back", "empty": "[]"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	checkRedaction(t, l)
}

func checkRedaction(t *testing.T, l *config.Loaded) {
	t.Helper()
	yaml, err := l.YAML()
	if err != nil {
		t.Fatal(err)
	}
	js, err := l.JSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{string(yaml), string(js)} {
		for _, secret := range []string{"pa55word", "topsecret", "x, y"} {
			if strings.Contains(out, secret) {
				t.Errorf("%q is printed:\n%s", secret, out)
			}
		}
		if !strings.Contains(out, "${env:POD}") || !strings.Contains(out, "[redacted]") {
			t.Errorf("references and redactions are missing:\n%s", out)
		}
	}
	if d := cmp.Diff([]string{"x, y: [1]\n# \"", "topsecret", "fall:back", "pa55word"}, l.Secrets); d != "" {
		t.Errorf("secrets for logs (-want +got):\n%s", d)
	}
}

// What a component's schema calls secret is hidden although nobody injected it.
func TestSchemaMarksSecrets(t *testing.T) {
	text := strings.Replace(minimal, "[{name: billing}]", `
  - name: billing
    config:
      token: s3cret-token
      pin: 12345
      url: https://example.com
      keys: [k3y-number-one, k3y-number-two]
      headers: {Authorization: b3arer}
      targets: [{name: a, password: pa55word}]
`, 1)
	schema := []byte(`{"type":"object","properties":{
		"token":{"type":"string","secret":true},"pin":{"type":"integer","writeOnly":true},"url":{"type":"string"},
		"keys":{"type":"array","secret":true,"items":{"type":"string"}},
		"headers":{"type":"object","additionalProperties":{"type":"string","secret":true}},
		"targets":{"type":"array","items":{"type":"object","additionalProperties":false,"properties":{"password":{"secret":true}}}}}}`)
	l := load(t, config.Options{Paths: []string{write(t, "s.yaml", text)}})
	conf := l.Config.Handlers[0].Config
	want := []string{"s3cret-token", "12345", "k3y-number-one", "k3y-number-two", "b3arer", "pa55word"}
	if d := cmp.Diff(want, conf.Secrets(schema)); d != "" {
		t.Errorf("Secrets (-want +got)\n%s", d)
	}
	if got := conf.Secrets(nil); len(got) != 0 {
		t.Errorf("without a schema %q are secret", got)
	}
	shown := l.Redact(conf, schema)
	yaml, err := shown.YAML()
	if err != nil {
		t.Fatal(err)
	}
	js, err := shown.JSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{string(yaml), string(js)} {
		for _, secret := range want {
			if strings.Contains(out, secret) {
				t.Errorf("%s is shown:\n%s", secret, out)
			}
		}
		if !strings.Contains(out, "https://example.com") || !strings.Contains(out, "[redacted]") {
			t.Errorf("what is no secret is hidden, or nothing stands for what is:\n%s", out)
		}
	}
	if !strings.Contains(string(conf.JSON()), "s3cret-token") {
		t.Error("the component does not get its secret")
	}
	if before, err := l.YAML(); err != nil || !strings.Contains(string(before), "s3cret-token") {
		t.Errorf("Redact changed what it was called on: %v", err)
	}
}
