package broker

import (
	"slices"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// member is one client in one group. Its key is the connection, as in RocketMQ: a client that came back before its old
// connection was noticed is there twice.
type member struct {
	conn     *remote.Conn
	clientID string
	language string
	version  int32
	seen     time.Time
}

func memberOf(r *remote.Request, clientID string) member {
	return member{
		conn: r.Conn, clientID: clientID, language: r.Command.Language.String(), version: r.Command.Version, seen: time.Now(),
	}
}

// consumerGroup is what the members of a group said of it. They share one table of subscriptions; the last to write wins.
type consumerGroup struct {
	fromWhere     wire.ConsumeFromWhere
	consumeType   wire.ConsumeType
	model         wire.MessageModel
	subscriptions map[string]wire.SubscriptionData
	members       []member
	bytes         int // what it takes, about
}

// memberTable is who consumes and who produces (ConsumerManager, ProducerManager; consumer-semantics.md 9.2).
type memberTable struct {
	ttl time.Duration

	mu           sync.Mutex
	consumers    map[string]*consumerGroup
	producers    map[string][]member
	fingerprints map[string]int32
	bytes        int // what all of it takes, about
	expiry       *time.Timer
	expired      func(groups []string, conns []*remote.Conn)
}

func newMemberTable(ttl time.Duration) *memberTable {
	return &memberTable{
		ttl: ttl, consumers: make(map[string]*consumerGroup), producers: make(map[string][]member),
		fingerprints: make(map[string]int32),
	}
}

// put adds or refreshes m and tells whether its connection is new.
func put(members []member, m member) ([]member, bool) {
	for i := range members {
		if members[i].conn == m.conn {
			members[i] = m
			return members, false
		}
	}
	return append(members, m), true
}

// consume registers a full heartbeat and tells whether the members must hear of it: a new connection, or another set of
// topics. Another expression on a topic is stored if its version is larger, but is no news. The error says that there is no
// room.
func (t *memberTable) consume(c wire.ConsumerData, m member) (changed bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.roomLocked(sizeOfData(c) + sizeOfMember(c.GroupName, m)); err != nil {
		return false, err
	}
	g := t.consumers[c.GroupName]
	if g == nil {
		g = &consumerGroup{subscriptions: make(map[string]wire.SubscriptionData)}
		t.consumers[c.GroupName] = g
	}
	g.fromWhere, g.consumeType, g.model = c.ConsumeFromWhere, c.ConsumeType, c.MessageModel
	g.members, changed = put(g.members, m)
	named := make(map[string]bool, len(c.SubscriptionDataSet))
	for _, s := range c.SubscriptionDataSet {
		named[s.Topic] = true
		old, known := g.subscriptions[s.Topic]
		changed = changed || !known
		if !known || s.SubVersion > old.SubVersion {
			g.subscriptions[s.Topic] = s
		}
	}
	for topic := range g.subscriptions {
		if !named[topic] {
			delete(g.subscriptions, topic)
			changed = true
		}
	}
	t.measureLocked(c.GroupName, g)
	t.armLocked(t.ttl)
	return changed, nil
}

// refresh takes a heartbeat without subscriptions. False: this member is not known, so what it subscribes to is not either.
func (t *memberTable) refresh(group string, m member) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.consumers[group]
	if g == nil {
		return false
	}
	i := slices.IndexFunc(g.members, func(o member) bool { return o.conn == m.conn })
	if i < 0 {
		return false
	}
	g.members[i] = m
	return true
}

// fingerprint notes the fingerprint of a version 2 heartbeat of a group that is registered, and tells whether its last one
// was another.
func (t *memberTable) fingerprint(group string, hash int32) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.consumers[group] == nil {
		return false
	}
	last, known := t.fingerprints[group]
	t.fingerprints[group] = hash
	return known && last != hash
}

// produce registers a producer. The error says that there is no room.
func (t *memberTable) produce(group string, m member) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	size := sizeOfMember(group, m)
	if err := t.roomLocked(size); err != nil {
		return err
	}
	members, added := put(t.producers[group], m)
	if added {
		t.bytes += size
	}
	t.producers[group] = members
	t.armLocked(t.ttl)
	return nil
}

// leave removes a connection from a group and tells whether it was there.
func (t *memberTable) leave(group string, conn *remote.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.leaveLocked(group, func(m member) bool { return m.conn == conn })
}

func (t *memberTable) leaveLocked(group string, match func(member) bool) bool {
	g := t.consumers[group]
	if g == nil {
		return false
	}
	before := len(g.members)
	g.members = slices.DeleteFunc(g.members, match)
	left := len(g.members) < before
	t.measureLocked(group, g)
	if len(g.members) == 0 {
		t.bytes -= g.bytes
		delete(t.consumers, group)
		delete(t.fingerprints, group)
	}
	return left
}

func (t *memberTable) leaveProducers(group string, conn *remote.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leaveProducersLocked(group, func(m member) bool { return m.conn == conn })
}

func (t *memberTable) leaveProducersLocked(group string, match func(member) bool) {
	counted := func(m member) bool {
		gone := match(m)
		if gone {
			t.bytes -= sizeOfMember(group, m)
		}
		return gone
	}
	if left := slices.DeleteFunc(t.producers[group], counted); len(left) > 0 {
		t.producers[group] = left
		return
	}
	delete(t.producers, group)
}

// leaveAll removes a connection everywhere and returns the consumer groups it was in.
func (t *memberTable) leaveAll(conn *remote.Conn) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.removeLocked(func(m member) bool { return m.conn == conn })
}

func (t *memberTable) removeLocked(match func(member) bool) (groups []string) {
	for name := range t.consumers {
		if t.leaveLocked(name, match) {
			groups = append(groups, name)
		}
	}
	for name := range t.producers {
		t.leaveProducersLocked(name, match)
	}
	slices.Sort(groups)
	return groups
}

// clear forgets everybody, as a restart does. No one is told.
func (t *memberTable) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.consumers)
	clear(t.producers)
	clear(t.fingerprints)
	t.bytes = 0
	if t.expiry != nil {
		t.expiry.Stop()
		t.expiry = nil
	}
}
