// Package sql92 reads and evaluates the filter expressions that RocketMQ calls SQL92: which messages a subscription
// wants, by their properties (consumer-semantics.md, "SQL92 grammar"). What it answers was compared with RocketMQ
// 5.3.3's own parser, expression by expression; testdata/outcomes.tsv holds that one's answers.
//
// The grammar, weakest binding first:
//
//	or         = and { OR and }
//	and        = equality { AND equality }
//	equality   = comparison { ("=" | "<>") comparison | IS [NOT] NULL }
//	comparison = unary { (">" | ">=" | "<" | "<=") unary | [NOT] BETWEEN unary AND unary | [NOT] IN "(" string {"," string} ")"
//	             | [NOT] (CONTAINS | STARTSWITH | ENDSWITH) string }
//	unary      = ("+" | "-" | NOT) unary | "(" or ")" | property | number | string | TRUE | FALSE | NULL
//
// Keywords have no case, names of properties do. A name begins with a letter, "_" or "$" and goes on with those and
// digits. Numbers are 12, 12L, 1.5, .5, 5., 1e3. Strings stand in single quotes, a quote in them is doubled. Comments are
// "-- to the end of the line" and "/* … */". NOT binds tighter than a comparison: NOT (a = 1) needs its parentheses.
//
// The rules of types and of null, which surprise:
//
//   - A property is always text, or null when the message has none of that name. Beside a number it is read as one of the
//     same kind: a whole number up to 2147483647 makes it an int, a larger one a long, one with a point a double. Text that
//     is no such number is an error, and so is 3000000000 beside 1: write a > 1.0.
//   - Beside TRUE or FALSE a property is true when it is "true" in any case. On its own, in AND, OR and NOT, it is FALSE.
//   - >, >=, <, <= and BETWEEN take no strings, booleans or NULL; two properties are compared as doubles.
//   - Logic has three values. A comparison with null is null, but for three: null = null is TRUE when both sides are
//     properties, "=" is FALSE when only its right side is null, and CONTAINS, STARTSWITH and ENDSWITH of null are FALSE
//     with and without NOT.
//   - Only TRUE lets a message pass: null and errors do not.
//
// It differs from RocketMQ in two things, both refusals of what there means something else than it seems: text after a
// complete expression, which RocketMQ ignores ("a = 1 LIKE 'x'" is "a = 1" there), and nesting deeper than 200.
//
// Promises: Parse never panics, takes time and memory in proportion to its input, and bounds both. An Expression is
// immutable and safe for concurrent use.
package sql92
