package wire

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// The filter languages of a subscription.
const (
	ExpressionTag   = "TAG"
	ExpressionSQL92 = "SQL92"
)

// AllTags is the expression that lets every message pass.
const AllTags = "*"

// TagHash is Java's string hash: over UTF-16 units, in 32 bits that wrap around. (The Go client hashes bytes of UTF-8, so
// its filters lose messages whose tags are not ASCII; remoting-protocol.md 3.4.)
func TagHash(s string) int32 {
	var h int32
	for _, r := range s {
		if r < 0x10000 {
			h = 31*h + r
			continue
		}
		hi, lo := utf16.EncodeRune(r)
		h = 31*h + hi
		h = 31*h + lo
	}
	return h
}

// NewSubscriptionData builds what a heartbeat says of one subscription (FilterAPI). expressionType "" means tags; version
// is in milliseconds. The error wraps ErrFilter: a tag expression of bars alone, or one that is SQL.
func NewSubscriptionData(topic, expressionType, expression string, version int64) (SubscriptionData, error) {
	s := SubscriptionData{
		Topic:          topic,
		ExpressionType: expressionType,
		SubString:      expression,
		SubVersion:     version,
		TagsSet:        []string{},
		CodeSet:        CodeSet{},
	}
	switch expressionType {
	case ExpressionSQL92:
		if strings.TrimSpace(expression) == "" {
			return SubscriptionData{}, fmt.Errorf("%w: the SQL92 expression for topic %s is empty", ErrFilter, topic)
		}
		return s, nil
	case "", ExpressionTag:
		s.ExpressionType = ExpressionTag
	default:
		return SubscriptionData{}, fmt.Errorf("%w: type %q; there are TAG and SQL92", ErrFilter, expressionType)
	}
	tags, err := ParseTags(expression)
	if err != nil {
		return SubscriptionData{}, err
	}
	s.setTags(tags)
	return s, nil
}

// ToldSubscriptionData is NewSubscriptionData for a subscription of another client. Nothing is wrong with that here: its tags
// are what FilterAPI makes of the expression, also where they look like SQL or there are none, and an unknown type stays.
func ToldSubscriptionData(topic, expressionType, expression string, version int64) SubscriptionData {
	s := SubscriptionData{
		Topic: topic, ExpressionType: expressionType, SubString: expression, SubVersion: version, TagsSet: []string{}, CodeSet: CodeSet{},
	}
	if expressionType != "" && expressionType != ExpressionTag {
		return s
	}
	s.ExpressionType = ExpressionTag
	if expression == "" || expression == AllTags {
		s.SubString = AllTags
		return s
	}
	tags := []string{}
	for part := range strings.SplitSeq(expression, "||") {
		if tag := strings.TrimSpace(part); tag != "" && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	s.setTags(tags)
	return s
}

// setTags sets the tags; nil: every message passes.
func (s *SubscriptionData) setTags(tags []string) {
	if tags == nil {
		s.SubString = AllTags
		return
	}
	s.TagsSet = tags
	for _, t := range tags {
		if h := TagHash(t); !slices.Contains(s.CodeSet, h) {
			s.CodeSet = append(s.CodeSet, h)
		}
	}
}

// ParseTags splits a tag expression such as "a || b" into its tags: trimmed, each once, in the order written. Nil means
// that every message passes. The error wraps ErrFilter.
func ParseTags(expression string) ([]string, error) {
	if e := strings.TrimSpace(expression); e == "" || e == AllTags {
		return nil, nil
	}
	var tags []string
	for part := range strings.SplitSeq(expression, "||") {
		tag := strings.TrimSpace(part)
		if tag == "" || slices.Contains(tags, tag) {
			continue
		}
		if looksLikeSQL(tag) {
			return nil, fmt.Errorf("%w: %q looks like SQL; write it as an SQL92 filter, a tag filter is tags joined by ||", ErrFilter, expression)
		}
		tags = append(tags, tag)
	}
	if tags == nil {
		return nil, fmt.Errorf("%w: %q has no tag; write tags joined by ||, or * for all", ErrFilter, expression)
	}
	return tags, nil
}

// looksLikeSQL finds what a tag never has in practice: a comparison, or a keyword between blanks.
func looksLikeSQL(tag string) bool {
	if strings.ContainsAny(tag, "=<>'") {
		return true
	}
	words := strings.Fields(strings.ToUpper(tag))
	for i, w := range words {
		switch w {
		case "AND", "OR", "NOT", "BETWEEN", "IN", "IS", "LIKE":
			if len(words) > 1 && (i > 0 || w == "NOT") {
				return true
			}
		}
	}
	return false
}

// Matches tells whether a message with this tag ("" = none) passes the subscription on the client's side: the broker
// compares hashes only, so the client compares the text. SQL92 is the broker's alone.
func (s *SubscriptionData) Matches(tag []byte) bool {
	if s.ExpressionType == ExpressionSQL92 || len(s.TagsSet) == 0 {
		return true
	}
	return slices.ContainsFunc(s.TagsSet, func(t string) bool { return t == string(tag) }) // no copy of tag
}
