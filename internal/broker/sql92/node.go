package sql92

import (
	"strings"
)

// node is a part of an expression. Its value is null when a property is missing; an error ends the whole evaluation.
type node interface {
	eval(p Properties) (value, error)
}

type (
	property string
	minus    struct{ of node }
	not      struct{ of node }
	truth    struct{ of property } // a property where a condition stands
	or       []node
	and      []node
	equals   struct{ left, right node }
	isNull   struct{ of node }
	order    struct {
		left, right node
		operator    string
	}
	in struct {
		of  property
		set map[string]struct{}
		not bool
	}
	textMatch struct {
		of       node
		part     string
		operator string
		not      bool
	}
)

func (c constant) eval(Properties) (value, error) { return value(c), nil }

func (n property) eval(p Properties) (value, error) {
	if v, ok := p(string(n)); ok {
		return value{kind: text, text: v}, nil
	}
	return value{}, nil
}

// eval of a negation is null for everything but a number: the text of a property is none yet.
func (n minus) eval(p Properties) (value, error) {
	v, err := n.of.eval(p)
	if err != nil {
		return value{}, err
	}
	switch v.kind {
	case integer, long:
		return value{kind: v.kind, whole: -v.whole}, nil
	case double:
		return value{kind: double, real: -v.real}, nil
	default:
		return value{}, nil
	}
}

func (n not) eval(p Properties) (value, error) {
	v, err := n.of.eval(p)
	if err != nil || v.kind == null {
		return value{}, err
	}
	return truthOf(!v.truth), nil
}

func (n truth) eval(p Properties) (value, error) {
	v, err := n.of.eval(p)
	if err != nil || v.kind == null {
		return value{}, err
	}
	return truthOf(false), nil
}

func (n or) eval(p Properties) (value, error) { return logic(n, p, true) }

func (n and) eval(p Properties) (value, error) { return logic(n, p, false) }

// logic is OR (decided by TRUE) and AND (decided by FALSE), from the left. What stands behind the deciding part is not
// evaluated, so an error there does no harm.
func logic(parts []node, p Properties, decides bool) (value, error) {
	unknown := false
	for _, part := range parts {
		v, err := part.eval(p)
		if err != nil {
			return value{}, err
		}
		if v.kind == null {
			unknown = true
		} else if v.truth == decides {
			return v, nil
		}
	}
	if unknown {
		return value{}, nil
	}
	return truthOf(!decides), nil
}

func (n equals) eval(p Properties) (value, error) {
	left, right, err := both(n.left, n.right, p)
	if err != nil {
		return value{}, err
	}
	switch {
	case left.kind == null && right.kind == null:
		return truthOf(true), nil
	case left.kind == null:
		return value{}, nil
	case right.kind == null:
		return truthOf(false), nil
	case left.kind == text && right.kind == text:
		return truthOf(left.text == right.text), nil
	}
	c, err := compareValues(left, right)
	return truthOf(c == 0), err
}

func (n isNull) eval(p Properties) (value, error) {
	v, err := n.of.eval(p)
	return truthOf(v.kind == null), err
}

func (n order) eval(p Properties) (value, error) {
	left, right, err := both(n.left, n.right, p)
	if err != nil || left.kind == null || right.kind == null {
		return value{}, err
	}
	c, err := compareValues(left, right)
	if err != nil {
		return value{}, err
	}
	switch n.operator {
	case ">":
		return truthOf(c > 0), nil
	case ">=":
		return truthOf(c >= 0), nil
	case "<":
		return truthOf(c < 0), nil
	default:
		return truthOf(c <= 0), nil
	}
}

func both(left, right node, p Properties) (l, r value, err error) {
	if l, err = left.eval(p); err != nil {
		return l, r, err
	}
	r, err = right.eval(p)
	return l, r, err
}

func (n in) eval(p Properties) (value, error) {
	v, err := n.of.eval(p)
	if err != nil || v.kind == null {
		return value{}, err
	}
	_, found := n.set[v.text]
	return truthOf(found != n.not), nil
}

func (n textMatch) eval(p Properties) (value, error) {
	if n.part == "" {
		return truthOf(false), nil
	}
	v, err := n.of.eval(p)
	if err != nil || v.kind != text {
		return truthOf(false), err
	}
	var found bool
	switch n.operator {
	case "CONTAINS":
		found = strings.Contains(v.text, n.part)
	case "STARTSWITH":
		found = strings.HasPrefix(v.text, n.part)
	default:
		found = strings.HasSuffix(v.text, n.part)
	}
	return truthOf(found != n.not), nil
}
