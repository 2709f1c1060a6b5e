package broker

import (
	"maps"
	"sync"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// maxForbidden bounds the pairs of group and topic that may be forbidden.
const maxForbidden = 100_000

// forbiddenTable is the topics that groups may not read.
type forbiddenTable struct {
	mu    sync.Mutex
	pairs map[groupTopic]struct{}
}

func newForbiddenTable() *forbiddenTable {
	return &forbiddenTable{pairs: make(map[groupTopic]struct{})}
}

func (t *forbiddenTable) has(k groupTopic) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, forbidden := t.pairs[k]
	return forbidden
}

// set forbids or allows; false: no more can be forbidden.
func (t *forbiddenTable) set(k groupTopic, forbidden bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !forbidden {
		delete(t.pairs, k)
		return true
	}
	if len(t.pairs) >= maxForbidden {
		return false
	}
	t.pairs[k] = struct{}{}
	return true
}

func (t *forbiddenTable) remove(match func(groupTopic) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.pairs, func(k groupTopic, _ struct{}) bool { return match(k) })
}

// onForbidden is 353: forbids a group to read a topic, allows it again, or without "readable" tells which it is.
func (b *Broker) onForbidden(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	k := groupTopic{group: f.text("group"), topic: f.text("topic")}
	if bad := f.bad(); bad != nil {
		return bad
	}
	if _, given := f.ext.Lookup("readable"); given && !b.forbidden.set(k, !f.flag("readable", true)) {
		return plain(wire.RespSystemError, "too many groups are forbidden to read topics")
	}
	a := jsonBody(wire.GroupForbidden{Group: k.group, Topic: k.topic, Readable: !b.forbidden.has(k)}, wire.Standard)
	a.EmptyRemark = true
	return a
}
