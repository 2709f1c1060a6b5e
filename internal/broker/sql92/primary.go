package sql92

import (
	"math"
	"strconv"
)

func (p *parser) unary() (node, error) {
	t := p.now
	if !t.is("+") && !t.is("-") && !t.is("NOT") {
		return p.primary()
	}
	if err := p.deeper(t.at); err != nil {
		return nil, err
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	at := p.now.at
	operand, err := p.unary()
	if err != nil {
		return nil, err
	}
	p.depth--
	switch t.text {
	case "+":
		return operand, nil
	case "-":
		return minus{operand}, nil
	}
	if operand, err = p.asBoolean(operand, at); err != nil {
		return nil, err
	}
	return not{operand}, nil
}

func (p *parser) primary() (node, error) {
	t := p.now
	switch {
	case t.is("("):
		return p.parenthesized()
	case t.kind == word:
		return property(t.text), p.advance()
	case t.kind == quoted:
		return constant{kind: text, text: t.text}, p.advance()
	case t.kind == whole:
		return p.whole(t)
	case t.kind == decimal:
		return p.decimal(t)
	case t.is("TRUE"), t.is("FALSE"):
		return constant{kind: boolean, truth: t.text == "TRUE"}, p.advance()
	case t.is("NULL"):
		return constant{kind: null}, p.advance()
	default:
		return nil, p.fail(t.at, "expected a property, a number, a string or a parenthesis, found %s", t)
	}
}

func (p *parser) parenthesized() (node, error) {
	if err := p.deeper(p.now.at); err != nil {
		return nil, err
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	inner, err := p.or()
	if err != nil {
		return nil, err
	}
	p.depth--
	return inner, p.want(")")
}

func (p *parser) whole(t token) (node, error) {
	n, err := strconv.ParseInt(t.text, 10, 64)
	if err != nil {
		return nil, p.fail(t.at, "%s is larger than %d; write it with a point", t, int64(math.MaxInt64))
	}
	k := long
	if n <= math.MaxInt32 {
		k = integer
	}
	return constant{kind: k, whole: n}, p.advance()
}

// decimal refuses zero as RocketMQ does, which takes the smallest double for the least one.
func (p *parser) decimal(t token) (node, error) {
	f, err := strconv.ParseFloat(t.text, 64)
	if err != nil {
		return nil, p.fail(t.at, "%s is too large", t)
	}
	if f == 0 {
		return nil, p.fail(t.at, "%s is too small for a number with a point; write 0", t)
	}
	return constant{kind: double, real: f}, p.advance()
}

// asBoolean is the operand of a logical operator: a condition, or a property that stands for one.
func (p *parser) asBoolean(n node, at int) (node, error) {
	switch n := n.(type) {
	case property:
		return truth{n}, nil
	case minus:
		return nil, p.fail(at, "a negated value is no condition")
	case constant:
		if n.kind != boolean && n.kind != null {
			return nil, p.fail(at, "%s is no condition; compare it with something", n)
		}
	}
	return n, nil
}

// ordered refuses what has no order.
func (p *parser) ordered(n node, at int) error {
	switch n := n.(type) {
	case property, minus:
		return nil
	case constant:
		if n.isNumber() {
			return nil
		}
		return p.fail(at, "%s has no order: >, >=, <, <= and BETWEEN compare numbers", n)
	default:
		return p.fail(at, "a condition has no order: >, >=, <, <= and BETWEEN compare numbers")
	}
}

func isNullLiteral(n node) bool {
	c, ok := n.(constant)
	return ok && c.kind == null
}

func negateIf(yes bool, n node) node {
	if yes {
		return not{n}
	}
	return n
}
