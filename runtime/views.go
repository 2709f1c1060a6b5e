package runtime

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Unlike is a difference between a member's subscriptions and those here. RocketMQ wants every member of a group to
// subscribe alike; a broker keeps one table for all of them, in which the last heartbeat wins (consumer-semantics.md 1.4).
type Unlike struct {
	Member string `json:"member"`
	Topic  string `json:"topic"`
	Here   string `json:"here,omitempty"`  // the filter, for people; empty = the topic is not subscribed here
	There  string `json:"there,omitempty"` // the filter of the member; empty = it does not subscribe to the topic
}

// String says it in a sentence.
func (u Unlike) String() string {
	switch {
	case u.There == "":
		return fmt.Sprintf("member %s does not subscribe to topic %s", u.Member, u.Topic)
	case u.Here == "":
		return fmt.Sprintf("member %s subscribes to topic %s (%s), and this member does not", u.Member, u.Topic, u.There)
	}
	return fmt.Sprintf("member %s filters topic %s by %s, and this member by %s", u.Member, u.Topic, u.There, u.Here)
}

// peerView is what a member said of its subscriptions (307), the retry topic left out.
type peerView struct {
	topics  map[string]rocketmq.Subscription
	streamd bool
	// absent holds, by topic, whom the member knows not to subscribe to it; nil: it divides topics among all members.
	absent map[string][]string
}

// absentProperty is the property of a streamd member's running info that holds peerView.absent as JSON.
const absentProperty = "streamd.absent"

// views is what is known of the subscriptions in a group. A member is known from its last answer to 307, and no longer when
// it did not answer the last question. Its methods may be called from any goroutine.
type views struct {
	mu    sync.Mutex // held for memory work only
	peers map[string]peerView
	// registered is what brokers had of the group when it was joined; nil once every other member told its own.
	registered map[string]rocketmq.Subscription
	absent     map[string][]string // by own topic: members known not to subscribe to it
	outbid     map[string]int64    // by topic: the highest version of another's unlike filter that was announced here
	told       string              // what the last heartbeat announced
}

func newViews() *views {
	return &views{peers: map[string]peerView{}, absent: map[string][]string{}, outbid: map[string]int64{}}
}

// learn takes a member's running info. One that lists no subscriptions says nothing of them.
func (v *views) learn(id string, info *wire.ConsumerRunningInfo) {
	p := peerView{topics: make(map[string]rocketmq.Subscription, len(info.Subscriptions)), streamd: info.Properties[allocate.PropertyStreamd] != ""}
	for _, data := range info.Subscriptions {
		if !wire.IsRetryTopic(data.Topic) {
			p.topics[data.Topic] = rocketmq.SubscriptionOf(data)
		}
	}
	if text := info.Properties[absentProperty]; text != "" {
		if json.Unmarshal([]byte(text), &p.absent) != nil {
			p.absent = nil // as a member of another version that does otherwise
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(info.Subscriptions) == 0 {
		delete(v.peers, id)
		return
	}
	v.peers[id] = p
}

// silent forgets a member that did not answer: it may have changed since.
func (v *views) silent(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.peers, id)
}

// keep forgets everybody but others; when all of those are known, so is what the brokers had registered.
func (v *views) keep(others []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	known := 0
	for id := range v.peers {
		if slices.Contains(others, id) {
			known++
		} else {
			delete(v.peers, id)
		}
	}
	if known == len(others) {
		v.registered = nil
	}
}

// noteRegistered takes what brokers have of the group before it is joined.
func (v *views) noteRegistered(subs []rocketmq.Subscription) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.registered = make(map[string]rocketmq.Subscription, len(subs))
	for _, s := range subs {
		if !wire.IsRetryTopic(s.Topic) {
			v.registered[s.Topic] = s
		}
	}
}

// whom lists the members to ask: those that are not known, and all of them while any of them subscribes unlike own.
func (v *views) whom(own []rocketmq.Subscription, others []string) []string {
	if len(v.unlike(own)) > 0 {
		return slices.Clone(others)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(others), func(id string) bool {
		_, known := v.peers[id]
		return known
	})
}

// unlike lists how the known members differ from own, in order.
func (v *views) unlike(own []rocketmq.Subscription) (all []Unlike) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, p := range v.peers {
		here := 0
		for i := range own {
			if wire.IsRetryTopic(own[i].Topic) {
				continue
			}
			theirs, ok := p.topics[own[i].Topic]
			switch {
			case !ok:
				all = append(all, Unlike{Member: id, Topic: own[i].Topic, Here: own[i].Filter()})
				continue
			case !own[i].SameFilter(&theirs):
				all = append(all, Unlike{Member: id, Topic: own[i].Topic, Here: own[i].Filter(), There: theirs.Filter()})
			}
			here++
		}
		if here == len(p.topics) {
			continue
		}
		for topic, theirs := range p.topics {
			if !slices.ContainsFunc(own, func(s rocketmq.Subscription) bool { return s.Topic == topic }) {
				all = append(all, Unlike{Member: id, Topic: topic, There: theirs.Filter()})
			}
		}
	}
	slices.SortFunc(all, func(a, b Unlike) int { return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Member, b.Member)) })
	return all
}

// divide tells among which members the queues of a topic are to be divided: those listed, less the absent, who are known
// not to subscribe to it. A Java member leaves the absent their share, so that nobody reads it. They are left out only when
// that is safe: every member that does subscribe is a streamd which said that it knows the same members to be absent, so
// that all compute alike. Otherwise among is all of them.
func (v *views) divide(topic, self string, members []string) (among, absent []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, id := range members {
		p, known := v.peers[id]
		if _, subscribes := p.topics[topic]; known && !subscribes && id != self && !slices.Contains(absent, id) {
			absent = append(absent, id)
		}
	}
	slices.Sort(absent)
	if len(absent) == 0 {
		delete(v.absent, topic)
		return members, nil
	}
	v.absent[topic] = absent // told to the others before it is acted upon
	for _, id := range members {
		if id != self && !slices.Contains(absent, id) && !slices.Equal(v.peers[id].absent[topic], absent) {
			return members, absent
		}
	}
	return slices.DeleteFunc(slices.Clone(members), func(id string) bool { return slices.Contains(absent, id) }), absent
}

// tell notes what a heartbeat announces, and isTold whether the last one announced the same.
func (v *views) tell(subs []rocketmq.Subscription) {
	text := textOf(subs)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.told = text
}

func (v *views) isTold(subs []rocketmq.Subscription) bool {
	text := textOf(subs)
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.told == text
}

func textOf(subs []rocketmq.Subscription) string {
	texts := make([]string, len(subs))
	for i := range subs {
		texts[i] = subs[i].Topic + " " + subs[i].Filter()
	}
	return strings.Join(texts, "\n")
}

// absentText is what absentProperty says.
func (v *views) absentText() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	text, err := json.Marshal(v.absent)
	if err != nil {
		return "" // cannot be: names and ids
	}
	return string(text)
}

// seen is a text that changes when something changes that divide depends on.
func (v *views) seen(own []rocketmq.Subscription) string {
	text := ""
	if unlike := v.unlike(own); len(unlike) > 0 {
		text = fmt.Sprint(unlike)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(v.peers)) {
		if absent := v.peers[id].absent; len(absent) > 0 {
			text += fmt.Sprint(id, absent)
		}
	}
	return text
}

// announce is what heartbeats tell of a group: the own subscriptions, and the old set with them for as long as members have
// it. Brokers take the table of whoever came last. A topic left out would fail the pulls of Java members that subscribe to
// it, and each such change has every member rebalance; a filter of ours would filter their messages away. Pulls of streamd
// carry their own filter, so that nothing here depends on the table.
func (v *views) announce(own []rocketmq.Subscription) []rocketmq.Subscription {
	v.mu.Lock()
	defer v.mu.Unlock()
	others := maps.Clone(v.registered) // of nobody knows whom
	if others == nil {
		others = map[string]rocketmq.Subscription{}
	}
	for _, p := range v.peers {
		for topic, s := range p.topics {
			if i := slices.IndexFunc(own, func(o rocketmq.Subscription) bool { return o.Topic == topic }); i >= 0 && (p.streamd || own[i].SameFilter(&s)) {
				continue
			}
			if old, ok := others[topic]; !ok || old.Version < s.Version {
				others[topic] = s
			}
		}
	}
	out := make([]rocketmq.Subscription, 0, len(own)+len(others))
	for _, s := range own {
		theirs, ok := others[s.Topic]
		delete(others, s.Topic)
		switch {
		case ok && !s.SameFilter(&theirs):
			v.outbid[s.Topic] = max(v.outbid[s.Topic], theirs.Version)
			s = theirs
		case v.outbid[s.Topic] >= s.Version:
			s.Version = v.outbid[s.Topic] + 1 // brokers replace a filter by a newer one only
		}
		out = append(out, s)
	}
	for _, topic := range slices.Sorted(maps.Keys(others)) {
		out = append(out, others[topic])
	}
	return out
}
