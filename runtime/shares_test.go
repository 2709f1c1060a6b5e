package runtime_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
)

// listing is a client whose broker lists other members than there are, while others is set.
type listing struct {
	*clustertest.Client
	others *atomic.Pointer[[]string]
}

func (l *listing) Members(ctx context.Context, groupName, topic string) ([]string, error) {
	if ids := l.others.Load(); ids != nil {
		return *ids, nil
	}
	return l.Client.Members(ctx, groupName, topic)
}

var _ runtime.Broker = (*listing)(nil)

// A member that left the group and returns has no share to keep: others have its queues since, whatever a broker lists.
func TestShareOfBeforeALeaveIsForgotten(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		p := newPair(t, 4)
		p.stop(p.a)
		p.stop(p.b)
		var others atomic.Pointer[[]string]
		a, b := p.config("c1"), p.configB()
		a.Brokers["main"], b.Brokers["main"] = &listing{p.cluster.Client("c1"), &others}, &listing{p.cluster.Client("c2"), &others}
		p.a, p.b = p.start(a), p.start(b)
		wait(3 * time.Second)
		p.loseB()
		wait(90 * time.Second)
		if x, y := owned(p.a), owned(p.b); len(x) != 4 || len(y) != 0 {
			t.Fatalf("after the leave owned %v and %v", x, y)
		}
		others.Store(&[]string{"c1"}) // the broker does not know yet who returns
		p.downB.Store(false)
		wait(time.Minute)
		if x, y := owned(p.a), owned(p.b); len(x) != 4 || len(y) != 0 || !holds(p.b.Status(), runtime.HoldMembersUnknown) {
			t.Errorf("owned %v and %v while the broker does not list who returned; %+v", x, y, p.b.Status().Streams[0].Holds)
		}
		others.Store(nil)
		wait(25 * time.Second)
		if x, y := owned(p.a), owned(p.b); len(x) != 2 || len(y) != 2 {
			t.Errorf("at last owned %v and %v", x, y)
		}
		p.stop(p.a)
		p.stop(p.b)
	})
}

// Nor is there one of a topic that was not subscribed for a while.
func TestShareOfATopicIsForgottenWithIt(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 2, ack)
		r.cluster.CreateTopic("Other", 2)
		both := func(s *runtime.StreamConfig) {
			s.Subscriptions = append(s.Subscriptions, runtime.Subscription{Topic: "Other"})
		}
		var others atomic.Pointer[[]string]
		config := func(change ...func(*runtime.StreamConfig)) runtime.Config {
			c := r.config("c1", change...)
			c.Brokers["main"] = &listing{r.cluster.Client("c1"), &others}
			return c
		}
		first := config(both)
		e := r.start(first)
		apply := func(change ...func(*runtime.StreamConfig)) {
			t.Helper()
			c := config(change...)
			c.Brokers = first.Brokers
			if err := e.Apply(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			wait(25 * time.Second)
		}
		wait(2 * time.Second)
		if got := ownedOf(e, "Other"); len(got) != 2 {
			t.Fatalf("owns %v", got)
		}
		apply()
		others.Store(&[]string{"c0"})
		apply(both)
		if x, y := ownedOf(e, topicName), ownedOf(e, "Other"); !slices.Equal(x, []int32{0, 1}) || len(y) != 0 {
			t.Errorf("without its id in the list it owns %v of the topic that stayed, and %v of the one that was gone", x, y)
		}
		others.Store(nil)
		wait(25 * time.Second)
		if got := ownedOf(e, "Other"); len(got) != 2 {
			t.Errorf("at last owns %v", got)
		}
		r.stop(e)
	})
}
