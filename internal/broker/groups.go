package broker

import (
	"encoding/json"
	"sync"
)

// GroupConfig is a consumer group's settings, in RocketMQ's JSON form (remoting-protocol.md 3.10).
type GroupConfig struct {
	Attributes         map[string]string `json:"attributes"`
	BrokerID           int64             `json:"brokerId"`
	BroadcastEnable    bool              `json:"consumeBroadcastEnable"`
	ConsumeEnable      bool              `json:"consumeEnable"`
	FromMinEnable      bool              `json:"consumeFromMinEnable"`
	Orderly            bool              `json:"consumeMessageOrderly"`
	ConsumeTimeoutMins int32             `json:"consumeTimeoutMinute"`
	Name               string            `json:"groupName"`
	RetryPolicy        json.RawMessage   `json:"groupRetryPolicy,omitempty"`
	SysFlag            int32             `json:"groupSysFlag"`
	NotifyEnable       bool              `json:"notifyConsumerIdsChangedEnable"`
	MaxRetries         int32             `json:"retryMaxTimes"`
	RetryQueues        int32             `json:"retryQueueNums"`
	SlowBrokerID       int64             `json:"whichBrokerWhenConsumeSlowly"`
}

func newGroup(name string, maxRetries int32) GroupConfig {
	return GroupConfig{
		Attributes: map[string]string{}, BroadcastEnable: true, ConsumeEnable: true, FromMinEnable: true, ConsumeTimeoutMins: 15,
		Name: name, RetryPolicy: json.RawMessage(`{"type":"CUSTOMIZED"}`), NotifyEnable: true, MaxRetries: maxRetries,
		RetryQueues: 1, SlowBrokerID: 1,
	}
}

// groupTable is the consumer groups a broker knows.
type groupTable struct {
	create     bool
	maxRetries int32

	mu      sync.Mutex
	groups  map[string]GroupConfig
	version int64
}

func newGroupTable(c Config) *groupTable {
	return &groupTable{create: !c.NoGroupCreation, maxRetries: c.MaxRetries, groups: make(map[string]GroupConfig)}
}

func (t *groupTable) get(name string) (GroupConfig, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g, ok := t.groups[name]
	return g, ok
}

// ensure returns the group, made if it is not there and groups may be made.
func (t *groupTable) ensure(name string) (GroupConfig, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g, ok := t.groups[name]; ok {
		return g, true
	}
	if !t.create || name == "" {
		return GroupConfig{}, false
	}
	g := newGroup(name, t.maxRetries)
	t.groups[name] = g
	t.version++
	return g, true
}

func (t *groupTable) put(g GroupConfig) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.groups[g.Name] = g
	t.version++
}

func (t *groupTable) remove(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.groups, name)
	t.version++
}

// snapshot is the body of 201.
func (t *groupTable) snapshot() ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return json.Marshal(struct {
		Version   dataVersion            `json:"dataVersion"`
		Forbidden map[string]struct{}    `json:"forbiddenTable"`
		Groups    map[string]GroupConfig `json:"subscriptionGroupTable"`
	}{dataVersion{Counter: t.version}, map[string]struct{}{}, t.groups})
}
