package sql92

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

type valueKind uint8

const (
	null valueKind = iota
	boolean
	integer // 32 bits
	long    // 64 bits
	double
	text
)

// value is what a node is for one message.
type value struct {
	kind  valueKind
	truth bool
	whole int64
	real  float64
	text  string
}

// constant is a value that stands in the expression.
type constant value

func truthOf(b bool) value { return value{kind: boolean, truth: b} }

func (c constant) isNumber() bool { return c.kind == integer || c.kind == long || c.kind == double }

func (c constant) String() string {
	switch c.kind {
	case null:
		return "NULL"
	case boolean:
		return strings.ToUpper(strconv.FormatBool(c.truth))
	case integer, long:
		return strconv.FormatInt(c.whole, 10)
	case double:
		return strconv.FormatFloat(c.real, 'g', -1, 64)
	default:
		return "'" + strings.ReplaceAll(c.text, "'", "''") + "'"
	}
}

// compareValues orders two values that are not null. Values that have nothing in common are ordered too, unequal.
func compareValues(l, r value) (int, error) {
	switch {
	case l.kind == boolean:
		return compareBoolean(l, r)
	case r.kind == boolean:
		if l.kind == text {
			return compareBoolean(truthOf(strings.EqualFold(l.text, "true")), r)
		}
		return -1, nil
	case l.kind == text && r.kind == text:
		return compareTexts(l.text, r.text)
	}
	l, err := l.as(r.kind)
	if err != nil {
		return 0, err
	}
	if r, err = r.as(l.kind); err != nil {
		return 0, err
	}
	if l.kind == double || r.kind == double {
		return compareReals(l.float(), r.float()), nil
	}
	return cmp.Compare(l.whole, r.whole), nil
}

// compareBoolean fails where RocketMQ does: it cannot turn text on the right of a boolean into one.
func compareBoolean(l, r value) (int, error) {
	switch {
	case r.kind == text:
		return 0, fmt.Errorf("%q cannot be compared with a boolean on its left", r.text)
	case r.kind != boolean:
		return -1, nil
	case l.truth == r.truth:
		return 0, nil
	case l.truth:
		return 1, nil
	default:
		return -1, nil
	}
}

// compareTexts orders two texts, which must both be numbers.
func compareTexts(l, r string) (int, error) {
	left, err := parseDouble(l)
	if err != nil {
		return 0, err
	}
	right, err := parseDouble(r)
	if err != nil {
		return 0, err
	}
	return compareReals(left, right), nil
}

// compareReals orders as Java does: NaN is the largest and equal to itself, −0.0 is less than 0.0.
func compareReals(l, r float64) int {
	switch {
	case l < r:
		return -1
	case l > r:
		return 1
	case math.IsNaN(l) || math.IsNaN(r):
		return cmp.Compare(oneIf(math.IsNaN(l)), oneIf(math.IsNaN(r)))
	default:
		return cmp.Compare(oneIf(math.Signbit(r)), oneIf(math.Signbit(l)))
	}
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (v value) float() float64 {
	if v.kind == double {
		return v.real
	}
	return float64(v.whole)
}

// as reads a text as a number of the kind that stands beside it. Other values stay.
func (v value) as(k valueKind) (value, error) {
	if v.kind != text {
		return v, nil
	}
	if k == double {
		f, err := parseDouble(v.text)
		return value{kind: double, real: f}, err
	}
	bits := 64
	if k == integer {
		bits = 32
	}
	n, err := strconv.ParseInt(v.text, 10, bits)
	if err != nil {
		return value{}, fmt.Errorf("%q is no whole number of %d bits", v.text, bits)
	}
	return value{kind: k, whole: n}, nil
}

// parseDouble reads what Java's Double.valueOf does: blanks around it, a suffix f or d, NaN and Infinity, hexadecimal.
func parseDouble(s string) (float64, error) {
	t := strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
	digits, negative := strings.CutPrefix(t, "-")
	if !negative {
		digits = strings.TrimPrefix(t, "+")
	}
	f, ok := parseUnsigned(digits)
	if !ok {
		return 0, fmt.Errorf("%q is no number", s)
	}
	if negative {
		f = -f
	}
	return f, nil
}

func parseUnsigned(s string) (float64, bool) {
	switch s {
	case "NaN":
		return math.NaN(), true
	case "Infinity":
		return math.Inf(1), true
	case "":
		return 0, false
	}
	if strings.IndexByte("fFdD", s[len(s)-1]) >= 0 {
		s = s[:len(s)-1]
	}
	// Go reads underscores and names of its own, which Java does not.
	if s == "" || !isDigit(s[0]) && s[0] != '.' || strings.Contains(s, "_") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil || errors.Is(err, strconv.ErrRange)
}
