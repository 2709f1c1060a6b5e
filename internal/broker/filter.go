package broker

import (
	"errors"
	"slices"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// filter lets messages pass by the hash of their tags. The broker never compares the text: clients do.
type filter struct {
	all    bool
	hashes []int32
}

// match is the filter in the store's form; nil = everything passes.
func (f filter) match() func(int32) bool {
	if f.all {
		return nil
	}
	return f.accepts
}

func (f filter) accepts(hash int32) bool { return f.all || slices.Contains(f.hashes, hash) }

// isTag tells whether an expression is one of tags, which it also is when it does not say.
func isTag(kind string) bool { return kind == "" || kind == "TAG" }

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

// registeredFilter is what a registered subscription lets pass: all if its text is exactly "*", else the codes that came with it.
func registeredFilter(s wire.SubscriptionData) filter {
	if s.SubString == "*" {
		return filter{all: true}
	}
	return filter{hashes: s.CodeSet}
}
