package broker

import (
	"errors"
	"slices"
	"strings"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/broker/sql92"
	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// filter lets messages pass by the hash of their tags, or by an expression over their properties. The broker never
// compares the text of tags: clients do.
type filter struct {
	all    bool
	hashes []int32
	sql    *sql92.Expression
}

// match is the filter in the store's form.
func (f filter) match() store.Match {
	switch {
	case f.all:
		return store.Match{}
	case f.sql != nil:
		return store.Match{Message: func(raw []byte) bool { return f.accepts(0, raw) }}
	}
	return store.Match{Tag: f.acceptsTag}
}

func (f filter) acceptsTag(hash int32) bool { return f.all || slices.Contains(f.hashes, hash) }

// accepts tells whether a stored message passes.
func (f filter) accepts(hash int32, raw []byte) bool {
	if f.sql == nil {
		return f.acceptsTag(hash)
	}
	var m wire.Message
	if _, err := m.Decode(raw); err != nil {
		return false
	}
	return f.sql.Matches(func(name string) (string, bool) { return lastProperty(m.Properties, name) })
}

// lastProperty is a property as Java's map has it: the parts of a batch repeat names, and the last one counts.
func lastProperty(text []byte, name string) (value string, ok bool) {
	for n, v := range wire.Properties(text) {
		if string(n) == name {
			value, ok = string(v), true
		}
	}
	return value, ok
}

// isTag tells whether an expression is one of tags, which it also is when it does not say.
func isTag(kind string) bool { return kind == "" || kind == "TAG" }

// isSQL tells whether an expression is SQL92.
func isSQL(kind string) bool { return kind == "SQL92" }

var errNoTags = errors.New("the expression has separators but no tag")

// parseTags reads "*" or "a || b" (FilterAPI.buildSubscriptionData).
func parseTags(expression string) (filter, error) {
	if expression == "" || expression == "*" {
		return filter{all: true}, nil
	}
	var f filter
	for tag := range strings.SplitSeq(expression, "||") {
		if tag = strings.TrimSpace(tag); tag != "" {
			f.hashes = append(f.hashes, javaHash(tag))
		}
	}
	if len(f.hashes) == 0 {
		return filter{}, errNoTags
	}
	return f, nil
}

// registeredFilter is what a registered subscription lets pass: all if its text is exactly "*", else the codes that came
// with it, or its expression.
func (b *Broker) registeredFilter(s wire.SubscriptionData) (filter, error) {
	if isSQL(s.ExpressionType) {
		e, err := b.expressions.get(s.SubString)
		return filter{sql: e}, err
	}
	if s.SubString == "*" {
		return filter{all: true}, nil
	}
	return filter{hashes: s.CodeSet}, nil
}

// chooseFilter takes the expression of the request, or what the group's heartbeats registered.
func (b *Broker) chooseFilter(p *pull) *remote.Answer {
	if p.flags&pullHasExpression != 0 {
		return b.chooseSent(p)
	}
	s, model, known, subscribed := b.members.subscription(p.group, p.topic)
	switch {
	case !known:
		return headed(wire.RespSubscriptionNotExist, "the consumer's group info not exist"+faq)
	case model == wire.Broadcasting && !b.mayBroadcast(p.group):
		return headed(wire.RespNoPermission, "the consumer group["+p.group+"] can not consume by broadcast way", forbidden(4))
	case b.forbidden.has(groupTopic{p.group, p.topic}):
		return headed(wire.RespNoPermission, "the consumer group["+p.group+"] is forbidden for topic["+p.topic+"]")
	case !subscribed:
		return headed(wire.RespSubscriptionNotExist, "the consumer's subscription not exist"+faq)
	case s.SubVersion < p.subscriptionVersion:
		return headed(wire.RespSubscriptionNotLatest, "the consumer's subscription not latest")
	case !isTag(s.ExpressionType) && !isSQL(s.ExpressionType):
		return headed(wire.RespSystemError, unknownFilter(s.ExpressionType))
	}
	f, err := b.registeredFilter(s)
	if err != nil {
		// A heartbeat is never refused, so this is where a bad expression that came with one shows.
		return headed(wire.RespFilterDataNotExist, "The broker's consumer filter data is not exist!Your expression may be wrong! "+err.Error())
	}
	p.filter = f
	return nil
}

// chooseSent takes the expression that came with the pull. RocketMQ lets everything pass when SQL92 of a pull is wrong
// (vectors/README.md 4.4); here it is refused.
func (b *Broker) chooseSent(p *pull) (bad *remote.Answer) {
	var err error
	switch {
	case isTag(p.kind):
		p.filter, err = parseTags(p.expression)
	case isSQL(p.kind):
		p.filter.sql, err = b.expressions.get(p.expression)
	default:
		return headed(wire.RespSystemError, unknownFilter(p.kind))
	}
	if err != nil {
		return headed(wire.RespSubscriptionParseFailed, "parse the consumer's subscription failed: "+err.Error())
	}
	return nil
}

func unknownFilter(kind string) string {
	return "The broker does not support consumer to filter message by " + kind
}
