package sql92

import "strings"

// parser is recursive descent, one method a level of the grammar in doc.go.
type parser struct {
	lexer
	now   token
	depth int
}

func (p *parser) advance() (err error) {
	p.now, err = p.next()
	return err
}

// take moves on if the present token is the given one.
func (p *parser) take(text string) (bool, error) {
	if !p.now.is(text) {
		return false, nil
	}
	return true, p.advance()
}

func (p *parser) want(text string) error {
	if !p.now.is(text) {
		return p.fail(p.now.at, "expected %s, found %s", text, p.now)
	}
	return p.advance()
}

// expression reads the whole text.
func (p *parser) expression() (node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.now.kind != end && !strings.HasPrefix(p.text[p.now.at:], "--") {
		return nil, p.fail(p.now.at, "the expression is complete before %s; RocketMQ would ignore the rest%s", p.now, misread(p.now))
	}
	return p.asBoolean(n, 0)
}

func misread(t token) string {
	switch {
	case t.kind == word && strings.EqualFold(t.text, "LIKE"):
		return "; there is no LIKE: write CONTAINS, STARTSWITH or ENDSWITH"
	case t.kind == whole:
		return "; numbers are written without leading zeros"
	default:
		return ""
	}
}

func (p *parser) or() (node, error) {
	return p.chain("OR", p.and, func(parts []node) node { return or(parts) })
}

func (p *parser) and() (node, error) {
	return p.chain("AND", p.equality, func(parts []node) node { return and(parts) })
}

// chain reads operands that one operator joins.
func (p *parser) chain(operator string, operand func() (node, error), join func([]node) node) (node, error) {
	at := p.now.at
	first, err := operand()
	if err != nil || !p.now.is(operator) {
		return first, err
	}
	if first, err = p.asBoolean(first, at); err != nil {
		return nil, err
	}
	parts := []node{first}
	for p.now.is(operator) {
		if err := p.advance(); err != nil {
			return nil, err
		}
		at := p.now.at
		next, err := operand()
		if err != nil {
			return nil, err
		}
		if next, err = p.asBoolean(next, at); err != nil {
			return nil, err
		}
		parts = append(parts, next)
	}
	return join(parts), nil
}

func (p *parser) equality() (node, error) {
	at := p.now.at
	left, err := p.comparison()
	for n := 1; err == nil; n++ {
		operator := p.now
		switch {
		case operator.is("="), operator.is("<>"):
			left, err = p.equal(left, at, operator.text == "<>")
		case operator.is("IS"):
			left, err = p.isNull(left)
		default:
			return left, nil
		}
		// What follows nests what is there: evaluation recurses into it.
		if err == nil && n > maxDepth {
			err = p.tooDeep(at)
		}
	}
	return nil, err
}

func (p *parser) equal(left node, at int, not bool) (node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	rightAt := p.now.at
	right, err := p.comparison()
	if err != nil {
		return nil, err
	}
	if isNullLiteral(left) || isNullLiteral(right) {
		return nil, p.fail(at, "NULL cannot be compared; write IS NULL")
	}
	if l, ok := left.(constant); ok && l.kind == boolean {
		if r, ok := right.(constant); ok && r.kind != boolean {
			return nil, p.fail(rightAt, "%s cannot be compared with a boolean", r)
		}
	}
	return negateIf(not, equals{left, right}), nil
}

func (p *parser) isNull(left node) (node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	not, err := p.take("NOT")
	if err != nil {
		return nil, err
	}
	return negateIf(not, isNull{left}), p.want("NULL")
}

func (p *parser) comparison() (node, error) {
	at := p.now.at
	left, err := p.unary()
	for n := 1; err == nil; n++ {
		if !startsComparison(p.now) {
			return left, nil
		}
		if left, err = p.compare(left, at); err == nil && n > maxDepth {
			err = p.tooDeep(at)
		}
	}
	return nil, err
}

func startsComparison(t token) bool {
	switch t.kind {
	case keyword:
		return t.text == "NOT" || t.text == "BETWEEN" || t.text == "IN" || isTextOperator(t)
	case symbol:
		return t.text[0] == '<' && t.text != "<>" || t.text[0] == '>'
	default:
		return false
	}
}

func isTextOperator(t token) bool {
	return t.kind == keyword && (t.text == "CONTAINS" || t.text == "STARTSWITH" || t.text == "ENDSWITH")
}

// compare reads one comparison after its left side.
func (p *parser) compare(left node, at int) (node, error) {
	not, err := p.take("NOT")
	if err != nil {
		return nil, err
	}
	operator := p.now
	if not && operator.kind != keyword {
		return nil, p.fail(operator.at, "expected BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH after NOT, found %s", operator)
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	switch {
	case operator.is("BETWEEN"):
		return p.between(left, at, not)
	case operator.is("IN"):
		return p.in(left, at, not)
	case isTextOperator(operator):
		part, err := p.stringLiteral()
		return textMatch{left, part, operator.text, not}, err
	case operator.kind == keyword:
		return nil, p.fail(operator.at, "expected BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH after NOT, found %s", operator)
	default:
		return p.order(left, at, operator.text)
	}
}

func (p *parser) order(left node, at int, operator string) (node, error) {
	if err := p.ordered(left, at); err != nil {
		return nil, err
	}
	rightAt := p.now.at
	right, err := p.unary()
	if err != nil {
		return nil, err
	}
	return order{left, right, operator}, p.ordered(right, rightAt)
}

func (p *parser) between(middle node, at int, not bool) (node, error) {
	lowAt := p.now.at
	low, err := p.unary()
	if err != nil {
		return nil, err
	}
	if err := p.want("AND"); err != nil {
		return nil, err
	}
	highAt := p.now.at
	high, err := p.unary()
	if err != nil {
		return nil, err
	}
	for _, side := range []struct {
		n  node
		at int
	}{{middle, at}, {low, lowAt}, {high, highAt}} {
		if err := p.ordered(side.n, side.at); err != nil {
			return nil, err
		}
	}
	if not {
		return or{order{middle, low, "<"}, order{middle, high, ">"}}, nil
	}
	l, fixed := low.(constant)
	h, both := high.(constant)
	if c, err := compareValues(value(l), value(h)); fixed && both && (err != nil || c > 0) {
		return nil, p.fail(lowAt, "BETWEEN %s AND %s is never true: the smaller number comes first", l, h)
	}
	return and{order{middle, low, ">="}, order{middle, high, "<="}}, nil
}

func (p *parser) in(left node, at int, not bool) (node, error) {
	name, ok := left.(property)
	if !ok {
		return nil, p.fail(at, "IN takes a property on its left")
	}
	if err := p.want("("); err != nil {
		return nil, err
	}
	set := make(map[string]struct{})
	for {
		element, err := p.stringLiteral()
		if err != nil {
			return nil, err
		}
		set[element] = struct{}{}
		more, err := p.take(",")
		if err != nil {
			return nil, err
		}
		if !more {
			return in{name, set, not}, p.want(")")
		}
	}
}

func (p *parser) stringLiteral() (string, error) {
	if p.now.kind != quoted {
		return "", p.fail(p.now.at, "expected a string in single quotes, found %s", p.now)
	}
	text := p.now.text
	return text, p.advance()
}

// deeper counts a level of nesting and refuses too many. Who calls it takes the level back.
func (p *parser) deeper(at int) error {
	if p.depth++; p.depth > maxDepth {
		return p.tooDeep(at)
	}
	return nil
}

func (p *parser) tooDeep(at int) error {
	return p.fail(at, "the expression is nested more than %d deep", maxDepth)
}
