// Package clustertest is an in-memory cluster and handlers for tests of the engine: deterministic, without a network, and
// fit for testing/synctest. It keeps only the rules that the engine relies on; internal/broker speaks the real protocol.
package clustertest

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// Cluster is one broker set with its topics, groups and offsets. It is safe for concurrent use.
type Cluster struct {
	// Fault is asked before each call; a non-nil error is returned to the caller. op is the Broker method's name.
	// It may block until it returns; it runs on the caller's goroutine.
	Fault func(op, client string, q sdk.Queue) error
	// Garble may change the body of a pull's answer.
	Garble func(q sdk.Queue, body []byte) []byte
	// Delay maps a delay level to a time; nil = the level in seconds.
	Delay func(level int) time.Duration

	mu      sync.Mutex
	topics  map[string]*topic
	groups  map[string]*groupState
	offsets map[string]map[sdk.Queue]int64
	resets  map[string]map[sdk.Queue]int64
	log     map[int64]*record // by log offset
	logEnd  int64
	sent    []rocketmq.OutgoingMessage
	arrived chan struct{} // closed and replaced at each arrival and reset
	Pulls   map[sdk.Queue]int
	most    map[sdk.Queue]int
	changes int
	locks   map[string]map[sdk.Queue]queueLock // by group

	noRetries map[string]bool // groups whose retryQueueNums is 0
}

// Broker is the name of the one broker.
const Broker = "broker-a"

type topic struct {
	queues   []*queueLog
	writable int
	watchers map[int]func()
	nextID   int
}

type queueLog struct {
	min      int64
	messages []*record // from min
}

type record struct {
	wire.Message
	text []byte
}

type groupState struct {
	members map[string]rocketmq.GroupSpec
	table   map[string]rocketmq.Subscription // what brokers keep of the group's subscriptions
}

func tableOf(spec rocketmq.GroupSpec) map[string]rocketmq.Subscription {
	table := map[string]rocketmq.Subscription{}
	if spec.Subscriptions == nil {
		return table
	}
	for _, s := range spec.Subscriptions() {
		table[s.Topic] = s
	}
	return table
}

// merge takes a heartbeat's table and tells whether its topics differ from those before.
func (g *groupState) merge(next map[string]rocketmq.Subscription) (changed bool) {
	for topic, s := range next {
		old, ok := g.table[topic]
		changed = changed || !ok
		if ok && old.Version >= s.Version {
			next[topic] = old
		}
	}
	changed = changed || len(next) != len(g.table)
	g.table = next
	return changed
}

// Table lists what the broker keeps of a group's subscriptions, by topic.
func (c *Cluster) Table(group string) []rocketmq.Subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.groups[group]
	if g == nil {
		return nil
	}
	all := make([]rocketmq.Subscription, 0, len(g.table))
	for _, s := range g.table {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b rocketmq.Subscription) int { return strings.Compare(a.Topic, b.Topic) })
	return all
}

// Changes counts the heartbeats that changed the topics of a group, of which every member is told.
func (c *Cluster) Changes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changes
}

// New makes an empty cluster.
func New() *Cluster {
	return &Cluster{
		topics: map[string]*topic{}, groups: map[string]*groupState{}, offsets: map[string]map[sdk.Queue]int64{},
		resets: map[string]map[sdk.Queue]int64{}, log: map[int64]*record{}, arrived: make(chan struct{}), Pulls: map[sdk.Queue]int{}, most: map[sdk.Queue]int{},
		locks: map[string]map[sdk.Queue]queueLock{},
	}
}

// Queue names a queue of the one broker.
func Queue(topic string, id int) sdk.Queue {
	return sdk.Queue{Topic: topic, Broker: Broker, ID: int32(id)}
}

// CreateTopic makes a topic, or changes the number of its queues.
func (c *Cluster) CreateTopic(name string, queues int) {
	c.mu.Lock()
	t := c.create(name, queues)
	watchers := make([]func(), 0, len(t.watchers))
	for _, f := range t.watchers {
		watchers = append(watchers, f)
	}
	c.mu.Unlock()
	for _, f := range watchers {
		go f()
	}
}

func (c *Cluster) create(name string, queues int) *topic {
	t := c.topics[name]
	if t == nil {
		t = &topic{watchers: map[int]func(){}}
		c.topics[name] = t
	}
	for len(t.queues) < queues {
		t.queues = append(t.queues, &queueLog{})
	}
	t.queues = t.queues[:queues]
	t.writable = queues
	return t
}

// SetWritable sets how many of a topic's queues take messages.
func (c *Cluster) SetWritable(name string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.create(name, max(1, len(c.create(name, 1).queues))).writable = n
}

// SetRetries gives a group retry queues, or takes them away: send-backs are then answered with success and stored nowhere.
func (c *Cluster) SetRetries(group string, on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.noRetries == nil {
		c.noRetries = map[string]bool{}
	}
	c.noRetries[group] = !on
}

// Put stores a message as a producer does and returns its offset.
func (c *Cluster) Put(q sdk.Queue, m rocketmq.OutgoingMessage) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	m.Topic = q.Topic
	return c.store(q, newRecord(&m), time.Now()).QueueOffset
}

// Fill stores n messages with bodies "0", "1", ... in a queue.
func (c *Cluster) Fill(q sdk.Queue, n int) {
	for i := range n {
		c.Put(q, rocketmq.OutgoingMessage{Body: []byte(strconv.Itoa(i)), Keys: []string{fmt.Sprintf("%s-%d", q, i)}})
	}
}

func newRecord(m *rocketmq.OutgoingMessage) *record {
	var text []byte
	put := func(name, value string) {
		if value == "" {
			return
		}
		var err error
		if text, err = wire.AppendProperty(text, name, value); err != nil {
			panic(err)
		}
	}
	names := make([]string, 0, len(m.Properties))
	for name := range m.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		put(name, m.Properties[name])
	}
	put(wire.PropTags, m.Tag)
	put(wire.PropKeys, strings.Join(m.Keys, " "))
	return &record{Message: wire.Message{Topic: []byte(m.Topic), Body: m.Body, Properties: text, Flag: m.Flag}}
}

// Host is the one store host.
func Host() netip.AddrPort { return netip.MustParseAddrPort("127.0.0.1:10911") }

func (c *Cluster) store(q sdk.Queue, r *record, now time.Time) *record {
	l := c.topics[q.Topic].queues[q.ID]
	r.QueueID, r.QueueOffset = q.ID, l.min+int64(len(l.messages))
	r.Topic = []byte(q.Topic)
	r.LogOffset = c.logEnd
	r.StoreMillis, r.StoreHost = now.UnixMilli(), Host()
	if r.BornMillis == 0 {
		r.BornMillis, r.BornHost = r.StoreMillis, Host()
	}
	r.BodyCRC = wire.BodyCRC(r.Body)
	var err error
	if r.text, err = r.Append(nil); err != nil {
		panic(err)
	}
	c.logEnd += int64(len(r.text))
	c.log[r.LogOffset] = r
	l.messages = append(l.messages, r)
	c.wake()
	return r
}

func (c *Cluster) wake() {
	close(c.arrived)
	c.arrived = make(chan struct{})
}

// Expire drops the messages of a queue below first, as a broker's retention does; the originals are gone.
func (c *Cluster) Expire(q sdk.Queue, first int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.topics[q.Topic].queues[q.ID]
	for l.min < first && len(l.messages) > 0 {
		delete(c.log, l.messages[0].LogOffset)
		l.messages = l.messages[1:]
		l.min++
	}
}

// Begin makes a topic with one queue, which begins at an offset: earlier messages have expired.
func (c *Cluster) Begin(q sdk.Queue, first int64) {
	c.CreateTopic(q.Topic, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.topics[q.Topic].queues[0].min = first
}

// Truncate drops the messages of a queue from end on, as a failover that loses the tail does.
func (c *Cluster) Truncate(q sdk.Queue, end int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.topics[q.Topic].queues[q.ID]
	for l.min+int64(len(l.messages)) > end {
		last := l.messages[len(l.messages)-1]
		delete(c.log, last.LogOffset)
		l.messages = l.messages[:len(l.messages)-1]
	}
}

// Reset does a server-side reset: the next pull gets code 21, commits before it are ignored.
func (c *Cluster) Reset(group string, q sdk.Queue, offset int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.table(c.resets, group)[q] = offset
	c.table(c.offsets, group)[q] = offset
	c.wake()
}

func (c *Cluster) table(t map[string]map[sdk.Queue]int64, group string) map[sdk.Queue]int64 {
	if t[group] == nil {
		t[group] = map[sdk.Queue]int64{}
	}
	return t[group]
}

// SetCommitted stores an offset as an earlier member would have.
func (c *Cluster) SetCommitted(group string, q sdk.Queue, offset int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.table(c.offsets, group)[q] = offset
}

// Forget drops a stored offset, as a broker that lost its offset file does.
func (c *Cluster) Forget(group string, q sdk.Queue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.table(c.offsets, group), q)
}

// Committed returns the stored offset; -1 = none.
func (c *Cluster) Committed(group string, q sdk.Queue) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o, ok := c.offsets[group][q]; ok {
		return o
	}
	return -1
}

// End returns a queue's next offset.
func (c *Cluster) End(q sdk.Queue) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.topics[q.Topic]
	if t == nil || int(q.ID) >= len(t.queues) {
		return 0
	}
	l := t.queues[q.ID]
	return l.min + int64(len(l.messages))
}

// Messages returns what stands in a topic, over all queues.
func (c *Cluster) Messages(name string) (all []wire.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.topics[name]; t != nil {
		for _, l := range t.queues {
			for _, r := range l.messages {
				all = append(all, r.Message)
			}
		}
	}
	return all
}

// BodyAt returns the body of the message at a log offset; empty = none is there.
func (c *Cluster) BodyAt(logOffset int64) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.log[logOffset]; r != nil {
		return string(r.Body)
	}
	return ""
}

// MostPulls is the greatest number of pulls of a queue that were under way at one time.
func (c *Cluster) MostPulls(q sdk.Queue) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most[q]
}

// Members lists a group's members.
func (c *Cluster) Members(group string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members(group)
}

func (c *Cluster) members(group string) (ids []string) {
	if g := c.groups[group]; g != nil {
		for id := range g.members {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Kill removes a client from all groups, as a closed connection does.
func (c *Cluster) Kill(client string) {
	c.mu.Lock()
	var notify []func()
	for _, g := range c.groups {
		if _, ok := g.members[client]; ok {
			delete(g.members, client)
			notify = append(notify, c.notified(g)...)
		}
	}
	c.mu.Unlock()
	for _, f := range notify {
		go f()
	}
}

func (c *Cluster) notified(g *groupState) (fs []func()) {
	for _, spec := range g.members {
		if spec.OnMembersChanged != nil {
			fs = append(fs, spec.OnMembersChanged)
		}
	}
	return fs
}

// Spec returns what a client said of a group when it joined.
func (c *Cluster) Spec(group, client string) rocketmq.GroupSpec {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.groups[group].members[client]
}
