package broker

import (
	"fmt"
	"strings"
	"sync"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// maxForbidden bounds the pairs of group and topic that may be forbidden.
const maxForbidden = 100_000

// forbiddenTable is the topics that groups may not read.
type forbiddenTable struct {
	save saver

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
		t.allowLocked(k)
		return true
	}
	if len(t.pairs) >= maxForbidden {
		return false
	}
	t.pairs[k] = struct{}{}
	t.save(joinKey(k.group, k.topic), []byte{})
	return true
}

func (t *forbiddenTable) allowLocked(k groupTopic) {
	if _, ok := t.pairs[k]; ok {
		delete(t.pairs, k)
		t.save(joinKey(k.group, k.topic), nil)
	}
}

// load takes over what the store has.
func (t *forbiddenTable) load(stored map[string][]byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.pairs)
	for key := range stored {
		group, topic, ok := strings.Cut(key, "\x00")
		if !ok {
			return fmt.Errorf("the entry %q is damaged", key)
		}
		t.pairs[groupTopic{group: group, topic: topic}] = struct{}{}
	}
	return nil
}

func (t *forbiddenTable) remove(match func(groupTopic) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k := range t.pairs {
		if match(k) {
			t.allowLocked(k)
		}
	}
}

// onForbidden is 353: forbids a group to read a topic, allows it again, or without "readable" tells which it is.
func (b *Broker) onForbidden(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	k := groupTopic{group: f.name("group"), topic: f.name("topic")}
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
