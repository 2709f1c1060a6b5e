package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime/internal/group"
	"github.com/streamd/streamd/runtime/internal/queue"
)

const (
	// parallelTopics bounds the topics that a round asks brokers about at once.
	parallelTopics = 64
	// patience is how long topics that are told wait for the others before their shares are applied ahead of the round's end.
	patience = 500 * time.Millisecond
)

// errSuperseded ends the questions of a round when another round is wanted and only silent brokers hold it up.
var errSuperseded = errors.New("the broker did not answer before the next round")

// sight is what the brokers tell of a topic. Hold says why they do not.
type sight struct {
	index   int // in the order of the subscriptions
	topic   string
	queues  []Queue
	members []string
	hold    Hold
}

// look asks about all topics at once, so that none waits for another's broker.
func (r *round) look(ctx context.Context, groupName string, names []string) <-chan sight {
	sights := make(chan sight, len(names)) // room for all: who looks never waits for who decides
	slots := make(chan struct{}, parallelTopics)
	for i, name := range names {
		r.m.calls.Go(func() {
			slots <- struct{}{} // freed within the limit of see
			defer func() { <-slots }()
			s := r.see(ctx, groupName, name)
			s.index = i
			sights <- s
		})
	}
	return sights
}

// see asks for a topic's queues and, when there are any, for the group's members.
func (r *round) see(ctx context.Context, groupName, topic string) sight {
	s := sight{topic: topic}
	ctx, cancel := context.WithTimeout(ctx, 3*askLimit)
	defer cancel()
	var err error
	if s.queues, err = r.m.s.broker.Queues(ctx, topic); err != nil {
		s.hold = Hold{Kind: queue.HoldRouteUnknown, Text: unseen(ctx, err) + whatMakes(topic, err)}
		return s
	}
	if len(s.queues) == 0 {
		return s
	}
	if sub, ok := r.m.s.config().filterOf(topic); ok {
		if err := r.m.s.checkFilter(ctx, groupName, sub, s.queues); err != nil {
			s.hold = Hold{Kind: queue.HoldFilter, Text: unseen(ctx, err)}
			return s
		}
	}
	if r.m.s.config().Broadcasting {
		r.seeMembers(ctx, groupName, &s)
		return s
	}
	if s.members, err = r.m.s.broker.Members(ctx, groupName, topic); err != nil {
		s.hold = membersHold(ctx, groupName, err)
	}
	return s
}

func unseen(ctx context.Context, err error) string {
	if cause := context.Cause(ctx); errors.Is(cause, errSuperseded) {
		return fmt.Sprintf("%v: %v", cause, err)
	}
	return err.Error()
}

// whatMakes tells what brings a topic that is not there into being, and what to look at when nobody can be asked; "" when
// neither is what is wrong.
func whatMakes(topic string, err error) string {
	switch {
	case errors.Is(err, rocketmq.ErrNoNameServer):
		return "; look whether the addresses under name_servers are right (the usual port is 9876), whether a name server runs there, and whether a firewall is between"
	case !errors.Is(err, rocketmq.ErrTopicNotFound):
		return ""
	case wire.IsRetryTopic(topic):
		return "; a broker makes it when the group's first heartbeat reaches it"
	}
	return "; it is taken up as soon as somebody creates it: mqadmin updateTopic -c CLUSTER -t " + topic + " -r 8 -w 8"
}

// decideAll looks at the topics and decides in their order. What is decided is given to part while brokers of others
// are silent or others are being decided; the result has all.
func (r *round) decideAll(ctx context.Context, c *StreamConfig, names []string, part func([]group.Topic)) []group.Topic {
	looking, supersede := context.WithCancelCause(ctx)
	defer supersede(nil)
	sights := r.look(looking, c.Group, names)
	if !c.Broadcasting {
		r.lookAtRetries(ctx, c) // before anything is handled that may have to go there
	}
	tick := time.NewTicker(patience)
	defer tick.Stop()
	silent := time.NewTimer(askLimit)
	defer silent.Stop()
	var hurry <-chan struct{} // heard once brokers had their time
	var fresh []sight
	topics := make([]group.Topic, len(names))
	for left := len(names); left > 0; {
		select {
		case s := <-sights:
			fresh = append(fresh, s)
			if left--; left > 0 {
				continue
			}
		case <-tick.C:
		case <-silent.C:
			hurry = r.hurry
			continue
		case <-hurry:
			supersede(errSuperseded)
			continue
		}
		r.decideSome(ctx, c, fresh, topics, left, part)
		fresh = fresh[:0]
	}
	return topics
}

// decideSome gives each topic to part as soon as it is decided, all but the round's last: at a hand-over its queues are
// without an owner, and the strategy's process is asked anew for each topic.
func (r *round) decideSome(ctx context.Context, c *StreamConfig, sights []sight, topics []group.Topic, left int, part func([]group.Topic)) {
	slices.SortFunc(sights, func(a, b sight) int { return cmp.Compare(a.index, b.index) })
	for i := range sights {
		t := r.topic(ctx, c, &sights[i])
		topics[sights[i].index] = t
		if left > 0 || i < len(sights)-1 {
			part([]group.Topic{t})
		}
	}
}

// sooner tells a round under way that another one is wanted. It never blocks.
func (r *round) sooner() {
	select {
	case r.hurry <- struct{}{}:
	default:
	}
}

// unhurried forgets a wish that came after the round that it was for.
func (r *round) unhurried() {
	select {
	case <-r.hurry:
	default:
	}
}
