package broker

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// newGroup returns a group with the settings that 5.3.3 gives a new one.
func newGroup(name string, maxRetries int32) wire.SubscriptionGroup {
	g := wire.NewSubscriptionGroup(name)
	orderly, timeout, flag := false, int32(15), int32(0)
	g.Attributes, g.ConsumeMessageOrderly, g.ConsumeTimeoutMinute, g.GroupSysFlag = map[string]string{}, &orderly, &timeout, &flag
	g.RetryPolicy = json.RawMessage(`{"type":"CUSTOMIZED"}`)
	g.RetryMaxTimes = maxRetries
	return g
}

// maxGroups bounds the groups, which a client makes by using them.
const maxGroups = 50_000

// groupTable is the consumer groups a broker knows.
type groupTable struct {
	create      bool
	maxRetries  int32
	save        saver
	saveVersion func(int64)

	mu      sync.Mutex
	groups  map[string]wire.SubscriptionGroup
	version int64
}

func newGroupTable(c Config) *groupTable {
	return &groupTable{create: !c.NoGroupCreation, maxRetries: c.MaxRetries, groups: make(map[string]wire.SubscriptionGroup)}
}

func (t *groupTable) get(name string) (wire.SubscriptionGroup, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g, ok := t.groups[name]
	return g, ok
}

// ensure returns the group, made if it is not there and groups may be made.
func (t *groupTable) ensure(name string) (wire.SubscriptionGroup, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g, ok := t.groups[name]; ok {
		return g, true
	}
	if !t.create || name == "" || strings.ContainsFunc(name, illegalInName) || len(name) > maxRetryTopic || len(t.groups) >= maxGroups {
		return wire.SubscriptionGroup{}, false
	}
	g := newGroup(name, t.maxRetries)
	t.putLocked(g)
	return g, true
}

func (t *groupTable) putLocked(g wire.SubscriptionGroup) {
	t.groups[g.GroupName] = g
	t.save(g.GroupName, encoded(g))
	t.version++
	t.saveVersion(t.version)
}

// load takes over what the store has.
func (t *groupTable) load(stored map[string][]byte, version int64) error {
	groups, err := decodeAll[wire.SubscriptionGroup](stored)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.groups, t.version = groups, version
	return nil
}

// full tells whether one more group is too many.
func (t *groupTable) full() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.groups) >= maxGroups
}

// creates tells whether groups are made by being used.
func (t *groupTable) creates() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.create
}

func (t *groupTable) setCreate(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.create = on
}

// names returns the groups in order.
func (t *groupTable) names() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.groups))
}

func (t *groupTable) put(g wire.SubscriptionGroup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.putLocked(g)
}

func (t *groupTable) remove(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.groups, name)
	t.save(name, nil)
	t.version++
	t.saveVersion(t.version)
}

// snapshot is the body of 201.
func (t *groupTable) snapshot() wire.SubscriptionGroupTable {
	t.mu.Lock()
	defer t.mu.Unlock()
	return wire.SubscriptionGroupTable{
		DataVersion: wire.DataVersion{Counter: t.version}, Forbidden: json.RawMessage(`{}`), Groups: maps.Clone(t.groups),
	}
}
