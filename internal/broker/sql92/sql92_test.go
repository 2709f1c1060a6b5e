package sql92_test

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/broker/sql92"
)

// unescape reads the notation of testdata/outcomes.tsv.
func unescape(s string) string {
	return strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r").Replace(s)
}

func propertiesOf(pairs []string) sql92.Properties {
	m := make(map[string]string)
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		m[name] = value
	}
	return func(name string) (string, bool) {
		v, ok := m[name]
		return v, ok
	}
}

// outcome is what an expression is for a message, in the words of testdata/outcomes.tsv.
func outcome(expression string, p sql92.Properties) string {
	e, err := sql92.Parse(expression)
	if err != nil {
		return "refused"
	}
	o, err := e.Outcome(p)
	if err != nil {
		return "error"
	}
	return o
}

// TestOutcomes_areThoseOfRocketMQ compares with what RocketMQ 5.3.3's own parser answered. Lines that begin with "ignored"
// are expressions whose end it ignores and this package refuses.
func TestOutcomes_areThoseOfRocketMQ(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/outcomes.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	n := 0
	for lines.Scan() {
		columns := strings.Split(lines.Text(), "\t")
		if len(columns) < 2 || strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		want, expression, p := columns[0], unescape(columns[1]), propertiesOf(columns[2:])
		if want == "ignored" {
			want = "refused"
		}
		if got := outcome(expression, p); got != want {
			t.Errorf("%s with %q: %s, want %s", columns[1], columns[2:], got, want)
		}
		if e, err := sql92.Parse(expression); err == nil && e.Matches(p) != (want == "TRUE") {
			t.Errorf("%s with %q: matches %t", columns[1], columns[2:], e.Matches(p))
		}
		n++
	}
	if err := lines.Err(); err != nil || n < 300 {
		t.Errorf("read %d lines: %v", n, err)
	}
}

func TestRefusals_sayWhereAndWhatInstead(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"":                                    "line 1, column 1: expected a property, a number, a string or a parenthesis, found the end",
		"a != 1":                              "line 1, column 3: '!' has no meaning here; write <> for not equal",
		`a = "x"`:                             `line 1, column 5: '"' has no meaning here; strings stand in single quotes`,
		"a = 1 && b = 2":                      "line 1, column 7: '&' has no meaning here; write AND, OR",
		"a.b = 1":                             "line 1, column 2: '.' has no meaning here; names of properties in an expression have letters, digits, _ and $ only",
		"a = 1\n AND\n\tb > 'x'":              "line 3, column 6: 'x' has no order: >, >=, <, <= and BETWEEN compare numbers",
		"ü = 1":                               "line 1, column 1: 'ü' has no meaning here",
		"x = 'é' AND y = 1 LIKE":              "line 1, column 19: the expression is complete before LIKE; RocketMQ would ignore the rest; there is no LIKE: write CONTAINS, STARTSWITH or ENDSWITH",
		"a = 010":                             "line 1, column 6: the expression is complete before 10; RocketMQ would ignore the rest; numbers are written without leading zeros",
		"a = NULL":                            "line 1, column 1: NULL cannot be compared; write IS NULL",
		"TRUE = 1":                            "line 1, column 8: 1 cannot be compared with a boolean",
		"a BETWEEN 3 AND 1":                   "line 1, column 11: BETWEEN 3 AND 1 is never true: the smaller number comes first",
		"a IN (1)":                            "line 1, column 7: expected a string in single quotes, found 1",
		"1 IN ('x')":                          "line 1, column 1: IN takes a property on its left",
		"a IN ('x'":                           "line 1, column 10: expected ), found the end",
		"a NOT = 1":                           "line 1, column 7: expected BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH after NOT, found =",
		"a NOT TRUE":                          "line 1, column 7: expected BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH after NOT, found TRUE",
		"a IS TRUE":                           "line 1, column 6: expected NULL, found TRUE",
		"(a = 1) > 2":                         "line 1, column 1: a condition has no order: >, >=, <, <= and BETWEEN compare numbers",
		"1":                                   "line 1, column 1: 1 is no condition; compare it with something",
		"-a":                                  "line 1, column 1: a negated value is no condition",
		"a = 'x":                              "line 1, column 5: the string that begins here has no end",
		"a = 1 /* x":                          "line 1, column 7: the comment that begins here has no end",
		"a = 0.0":                             "line 1, column 5: 0.0 is too small for a number with a point; write 0",
		"a = 1e999":                           "line 1, column 5: 1e999 is too large",
		"a = 9223372036854775808":             "line 1, column 5: 9223372036854775808 is larger than 9223372036854775807; write it with a point",
		strings.Repeat("(", 300):              "line 1, column 201: the expression is nested more than 200 deep",
		strings.Repeat("-", 300):              "line 1, column 201: the expression is nested more than 200 deep",
		"a" + strings.Repeat(" IS NULL", 300): "line 1, column 1: the expression is nested more than 200 deep",
		"a" + strings.Repeat(" CONTAINS 'x'", 300): "line 1, column 1: the expression is nested more than 200 deep",
		strings.Repeat("a", 70_000):                "the filter expression has 70000 bytes; at most 65536 are allowed",
	} {
		_, err := sql92.Parse(expression)
		if err == nil || err.Error() != want {
			t.Errorf("%.40q: %v, want %s", expression, err, want)
		}
	}
}

// TestLongChains_areNoNesting has far more terms than may be nested.
func TestLongChains_areNoNesting(t *testing.T) {
	t.Parallel()
	for _, operator := range []string{" OR ", " AND "} {
		e, err := sql92.Parse("a = 1" + strings.Repeat(operator+"(a = 1)", 4000))
		if err != nil || !e.Matches(propertiesOf([]string{"a=1"})) {
			t.Errorf("%s: %v", operator, err)
		}
	}
}

func TestErrors_nameTheProperty(t *testing.T) {
	t.Parallel()
	e, err := sql92.Parse("a > 1")
	if err != nil {
		t.Fatal(err)
	}
	if e.String() != "a > 1" {
		t.Errorf("text %q", e)
	}
	for value, want := range map[string]string{
		"x": `"x" is no whole number of 32 bits`, "3000000000": `"3000000000" is no whole number of 32 bits`, "1.0": `"1.0" is no whole number of 32 bits`,
	} {
		if _, err := e.Outcome(propertiesOf([]string{"a=" + value})); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", value, err, want)
		}
	}
}

// FuzzParse holds what every input must keep: no panic, the same outcome twice, and whatever parses evaluates.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"a = 1 AND (b <> 'x' OR c IS NOT NULL)", "a BETWEEN -1 AND 2.5e3", "NOT a IN ('x','''')", "a NOT CONTAINS 'x' -- y\nOR TRUE",
		"a NOT BETWEEN b AND c", "- + - a >= .5", "/**/ $x_1 STARTSWITH '' = FALSE", "'", "--", "((((", "a = 00", "\x80", "a = 1L",
	} {
		f.Add(seed, "1")
	}
	f.Fuzz(func(t *testing.T, expression, value string) {
		e, err := sql92.Parse(expression)
		if err != nil {
			if e != nil || !strings.Contains(err.Error(), " ") {
				t.Errorf("%q: %v", expression, err)
			}
			return
		}
		p := func(name string) (string, bool) { return value, name != "z" }
		first, err := e.Outcome(p)
		second, again := e.Outcome(p)
		if first != second || (err == nil) != (again == nil) || e.Matches(p) != (first == "TRUE") {
			t.Errorf("%q with %q: %s %v, then %s %v", expression, value, first, err, second, again)
		}
		wrapped, err := sql92.Parse("(" + expression + "\n)")
		if err == nil {
			if third, _ := wrapped.Outcome(p); third != first {
				t.Errorf("%q: %s, in parentheses %s", expression, first, third)
			}
		}
	})
}
