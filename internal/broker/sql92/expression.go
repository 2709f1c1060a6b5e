package sql92

import "fmt"

// Limits of an expression. The length is far above what fits into a subscription that a person wrote.
const (
	maxLength = 64 << 10
	maxDepth  = 200
)

// Expression is a filter that was parsed.
type Expression struct {
	root node
	text string
}

// Properties looks a message's property up by its name; false when the message has none.
type Properties func(name string) (value string, ok bool)

// Parse reads an expression. The error says where it is wrong and what to write instead.
func Parse(text string) (*Expression, error) {
	if len(text) > maxLength {
		return nil, fmt.Errorf("the filter expression has %d bytes; at most %d are allowed", len(text), maxLength)
	}
	p := &parser{lexer: lexer{text: text}}
	root, err := p.expression()
	if err != nil {
		return nil, err
	}
	return &Expression{root: root, text: text}, nil
}

// String is the expression as it was given to Parse.
func (e *Expression) String() string { return e.text }

// Matches tells whether a message with these properties passes: whether the expression is TRUE.
func (e *Expression) Matches(p Properties) bool {
	v, err := e.root.eval(p)
	return err == nil && v.kind == boolean && v.truth
}

// Outcome is what an expression is for a message: "TRUE", "FALSE", "NULL", or an error that says which property cannot be
// compared. It is Matches for those who want to know why.
func (e *Expression) Outcome(p Properties) (string, error) {
	v, err := e.root.eval(p)
	switch {
	case err != nil:
		return "", err
	case v.kind == null:
		return "NULL", nil
	case v.truth:
		return "TRUE", nil
	default:
		return "FALSE", nil
	}
}
