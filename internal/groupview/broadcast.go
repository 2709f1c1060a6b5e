package groupview

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/streamd/streamd/sdk"
)

// Progress is where one member of a broadcasting group stands in a queue, as the member itself tells: no broker knows.
type Progress struct {
	Member    string `json:"member"` // client id
	Topic     string `json:"topic"`
	Broker    string `json:"broker"`
	ID        int32  `json:"id"`
	Committed int64  `json:"committed"` // Unknown: the member tells none
	Max       int64  `json:"max"`       // Unknown
	Lag       int64  `json:"lag"`       // Unknown
}

// local enters what the members of a broadcasting group tell of their own progress (307). A queue stands where its slowest
// known member does.
func (r *reader) local(ctx context.Context) {
	if r.out.Model != modelBroadcasting {
		return
	}
	r.ends(ctx)
	for _, id := range slices.Sorted(maps.Keys(r.infos)) {
		queues := r.infos[id].Queues
		for q, p := range queues {
			own := sdk.Queue{Topic: q.Topic, Broker: q.BrokerName, ID: q.QueueID}
			if p.Dropped {
				continue
			}
			v := r.queue(own)
			at := Progress{Member: id, Topic: own.Topic, Broker: own.Broker, ID: own.ID, Committed: p.CommitOffset, Max: v.Max, Lag: Unknown}
			if at.Committed < 0 {
				at.Committed = Unknown
			}
			if at.Committed >= 0 && v.Max >= 0 {
				at.Lag = max(v.Max-at.Committed, 0)
				if at.Lag > v.Lag {
					v.Committed, v.Lag = at.Committed, at.Lag
				}
			}
			r.out.Progress = append(r.out.Progress, at)
		}
	}
	slices.SortFunc(r.out.Progress, func(a, b Progress) int {
		x, y := sdk.Queue{Topic: a.Topic, Broker: a.Broker, ID: a.ID}, sdk.Queue{Topic: b.Topic, Broker: b.Broker, ID: b.ID}
		if c := x.Compare(y); c != 0 {
			return c
		}
		if a.Member < b.Member {
			return -1
		}
		return 1
	})
	for _, m := range r.out.Members {
		if m.Silent != "" {
			r.note("member %s does not tell where it stands (307), and no broker knows it: %s", m.ClientID, m.Silent)
		}
	}
}

// ends reads the greatest offset of each queue: brokers tell them with a topic's name only, when they have no offsets of the
// group (208).
func (r *reader) ends(ctx context.Context) {
	var wg sync.WaitGroup
	for _, broker := range r.brokers {
		for _, sub := range r.out.Subscriptions {
			wg.Go(func() {
				stats, err := r.cluster.ConsumeStats(ctx, broker, r.out.Group, sub.Topic)
				if err != nil {
					r.note("broker %s does not tell the ends of %s: %v", broker, sub.Topic, err)
					return
				}
				r.mu.Lock()
				defer r.mu.Unlock()
				for q, o := range stats.Offsets {
					r.queue(sdk.Queue{Topic: q.Topic, Broker: q.BrokerName, ID: q.QueueID}).Max = o.BrokerOffset
				}
			})
		}
	}
	wg.Wait()
}
