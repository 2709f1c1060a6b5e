package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

type limits struct {
	Max  int      `json:"max" default:"10" min:"1" max:"100"`
	Wait Duration `json:"wait" default:"1s" min:"10ms"`
}

type common struct {
	Region string `json:"region" enum:"eu,us" default:"eu"`
}

type full struct {
	common
	URL     string            `json:"url" required:"true" doc:"where to post" min:"3"`
	Token   string            `json:"token" secret:"true"`
	Retries *uint8            `json:"retries"`
	Ratio   float64           `json:"ratio" max:"1"`
	On      bool              `json:"on" default:"true"`
	Tags    []string          `json:"tags" max:"2"`
	Labels  map[string]int    `json:"labels"`
	Since   time.Time         `json:"since"`
	Limits  limits            `json:"limits"`
	Raw     any               `json:"raw"`
	Deep    map[string]limits `json:"deep"`
	Hidden  string            `json:"-"`
}

func (f *full) Validate() error {
	if f.URL == "http://both" {
		return errors.Join(At("/url", errors.New("is taken")), errors.New("and more"))
	}
	return nil
}

func decodeFull(t *testing.T, config string) (full, []Diagnostic) {
	t.Helper()
	var f full
	return f, decodeInto(config, &f)
}

func decodeInto(config string, f *full) []Diagnostic {
	return decodeConfig([]byte(config), reflect.ValueOf(f).Elem())
}

func TestConfigIsRead(t *testing.T) {
	var f full
	found := decodeInto(`{"url":"http://x","retries":3,"ratio":0.5,"tags":["a"],"labels":{"a":1},"since":"2026-11-01T00:00:00Z",
		"limits":{"max":7},"raw":{"n":12345678901234567890},"deep":{"x":{"wait":"2m"}},"on":false,"region":"us"}`, &f)
	if len(found) > 0 {
		t.Fatalf("found %+v", found)
	}
	if f.URL != "http://x" || *f.Retries != 3 || f.Ratio != 0.5 || len(f.Tags) != 1 || f.Labels["a"] != 1 || f.Since.Month() != 11 ||
		f.Limits.Max != 7 || f.Limits.Wait.Std() != time.Second || f.On || f.Region != "us" ||
		f.Deep["x"].Wait.Std() != 2*time.Minute || f.Deep["x"].Max != 10 {
		t.Errorf("read %+v", f)
	}
	if n := f.Raw.(map[string]any)["n"].(json.Number); n != "12345678901234567890" {
		t.Errorf("a large integer became %s", n)
	}
	var d full
	if found := decodeInto(`{"url":"abc"}`, &d); len(found) > 0 || !d.On || d.Limits.Max != 10 || d.Region != "eu" || d.Retries != nil {
		t.Errorf("defaults %+v, %v", d, found)
	}
}

func TestConfigFaultsAreAllNamedAtOnce(t *testing.T) {
	_, found := decodeFull(t, `{"urll":"x","token":5,"retries":300,"ratio":2,"tags":["a","b","c"],"labels":{"a/b":"x"},"since":"today",
		"limits":{"max":0,"wait":"5ms","mx":1},"on":"yes","region":"mars","Hidden":"x"}`)
	var got []string
	for _, d := range found {
		got = append(got, fmt.Sprintf("%s: %s (%s)", d.Pointer, d.Text, d.Hint))
	}
	all := strings.Join(got, "\n")
	for _, want := range []string{
		`/url: the key "url" is missing (url: …, where to post)`, `/urll: unknown key "urll" (did you mean "url"?)`, `/token: is the number 5, not a string ("5")`,
		`/retries: 300 is no positive integer of 8 bits`, `/ratio: 2 is more than 1 (at most 1)`, `/tags: length 3 is more than 2`,
		`/labels/a~1b: is a string, not a number`, `/since: parsing time`, `/limits/max: 0 is less than 1 (at least 1)`,
		`/limits/wait: 5ms is less than 10ms`, `/limits/mx: unknown key "mx" (did you mean "max"?)`, `/on: is a string, not true or false`,
		`/region: "mars" is not allowed (one of eu, us)`, `/Hidden: unknown key "Hidden" (known keys: `,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("missing: %s", want)
		}
	}
	if len(found) != 14 {
		t.Errorf("%d diagnostics:\n%s", len(found), all)
	}
}

func TestConfigThatIsNoObject(t *testing.T) {
	for config, want := range map[string]string{"[": "not JSON", "[]": "is a list", `{} {}`: "not JSON", "7": "number 7"} {
		if _, found := decodeFull(t, config); len(found) == 0 || !strings.Contains(found[0].Text, want) {
			t.Errorf("%s: %+v", config, found)
		}
	}
	if _, found := decodeFull(t, `{"url":"http://x","limits":{"wait":60}}`); len(found) != 1 || found[0].Hint != `"60s" for seconds` {
		t.Errorf("a duration without a unit: %+v", found)
	}
	for _, config := range []string{"", "null", " "} {
		if _, found := decodeFull(t, config); len(found) != 1 || found[0].Pointer != "/url" {
			t.Errorf("%q: %+v", config, found)
		}
	}
}

func TestValidateIsCalledLast(t *testing.T) {
	_, found := decodeFull(t, `{"url":"http://both"}`)
	if len(found) != 2 || found[0].Pointer != "" || found[0].Text != "and more" || found[1].Pointer != "/url" {
		t.Errorf("found %+v", found)
	}
	if _, found := decodeFull(t, `{"url":"http://both","on":1}`); len(found) != 1 {
		t.Errorf("Validate was called on a broken config: %+v", found)
	}
}

func TestSchemaAgreesWithTheCheck(t *testing.T) {
	raw, err := schemaOf(reflect.TypeFor[full]())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("full.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("full.json")
	if err != nil {
		t.Fatal(err)
	}
	for config, valid := range map[string]bool{
		`{"url":"abc"}`: true, `{}`: false, `{"url":"ab"}`: false, `{"url":"abc","x":1}`: false, `{"url":"abc","ratio":2}`: false,
		`{"url":"abc","tags":["a","b","c"]}`: false, `{"url":"abc","region":"mars"}`: false, `{"url":"abc","limits":{"max":101}}`: false,
		`{"url":"abc","limits":{"wait":"1m30s"}}`: true, `{"url":"abc","limits":{"wait":"60"}}`: false, `{"url":"abc","retries":-1}`: false,
	} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(config))
		if err != nil {
			t.Fatal(err)
		}
		_, found := decodeFull(t, config)
		if byRule := schema.Validate(value) == nil; byRule != valid || (len(found) == 0) != valid {
			t.Errorf("%s: schema says %v, the check says %+v, want %v", config, byRule, found, valid)
		}
	}
	for _, want := range []string{`"secret":true`, `"description":"where to post"`, `"default":10`, `"default":"1s"`, `"required":["url"]`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("the schema lacks %s: %s", want, raw)
		}
	}
}

func TestComponentsThatCannotBe(t *testing.T) {
	type channels struct{ C chan int }
	type itself struct{ Next []itself }
	type badDefault struct {
		N int `default:"many"`
	}
	type badBound struct {
		N int `min:"few"`
	}
	panics := func(what string, f func()) {
		t.Helper()
		defer func() {
			if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), what) {
				t.Errorf("want a panic about %q, got %v", what, p)
			}
		}()
		f()
	}
	panics("cannot be read", func() { build[channels]() })
	panics("holds itself", func() { build[itself]() })
	panics(`default "many"`, func() { build[badDefault]() })
	panics(`bound "few"`, func() { build[badBound]() })
	panics("not a struct", func() { build[int]() })
}

func build[C any]() Spec {
	return Component("x", func(context.Context, C, Env) (HandlerFunc, error) { return nil, nil })
}

func TestVerdictOf(t *testing.T) {
	base := errors.New("base")
	for _, c := range []struct {
		err  error
		want Verdict
	}{
		{nil, Verdict{Kind: Acked}},
		{base, Verdict{Kind: Retried, Class: "error", Text: "base"}},
		{RetryAfter(base, time.Minute), Verdict{Kind: Retried, Class: "error", Text: "base", Delay: time.Minute}},
		{RetryAfter(WithClass("db", base), time.Minute), Verdict{Kind: Retried, Class: "db", Text: "base", Delay: time.Minute}},
		{Reject("bad", nil), Verdict{Kind: Rejected, Class: "bad", Text: "bad"}},
		{fmt.Errorf("x: %w", context.Canceled), Verdict{Kind: Retried, Class: "canceled", Text: "x: context canceled"}},
	} {
		if got := VerdictOf(c.err); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.err, got, c.want)
		}
	}
	if !errors.Is(RetryAfter(base, 1), base) || !errors.Is(Reject("x", base), base) {
		t.Error("errors.Is must see through")
	}
	if v := VerdictOf(errors.New(strings.Repeat("é", 1<<20))); len(v.Text) > maxText+3 || !strings.HasPrefix(v.Text, "éé") {
		t.Errorf("a long text has %d bytes", len(v.Text))
	}
}
