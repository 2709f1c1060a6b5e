package runtime_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// A member of another make may subscribe by tags that a config here would refuse. It neither keeps streamd out of the group
// nor from telling brokers of its groups later, when it is learned from the member itself.
func TestForeignExpressionStopsNobody(t *testing.T) {
	for _, early := range []bool{true, false} {
		bubbletest.Run(t, func(t *testing.T) {
			f := newFleet(t, broker.Config{}, ack)
			defer f.close()
			f.b.DeleteTopic(topicName)
			f.a.CreateTopic("Other", 2)
			subs := []rocketmq.Subscription{
				{Topic: topicName, Expression: "*", Type: rocketmq.FilterTag, Version: 1},
				{Topic: "Other", Expression: "kind=1 || b", Type: rocketmq.FilterTag, Version: 1, Foreign: true},
			}
			info := &wire.ConsumerRunningInfo{Properties: map[string]string{}}
			for _, s := range subs {
				info.Subscriptions = append(info.Subscriptions, wire.ToldSubscriptionData(s.Topic, string(s.Type), s.Expression, s.Version))
			}
			java, err := rocketmq.New(rocketmq.Config{NameServers: []string{f.a.Address()}, ClientID: "10.0.0.3@1#9", Dial: f.dial, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			if err := java.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			join := func() {
				err := java.Join(t.Context(), rocketmq.GroupSpec{
					Name: group, Subscriptions: func() []rocketmq.Subscription { return subs }, RunningInfo: func(bool) *wire.ConsumerRunningInfo { return info },
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if early {
				join()
			}
			e, stop := f.member("10.0.0.3@1#1")
			if !early {
				wait(5 * time.Second)
				join()
			}
			wait(5 * time.Minute)
			if got := owned(e); len(got) != 1 || len(f.a.Members(group)) != 2 {
				t.Errorf("early %t: owns %v, members %v", early, got, f.a.Members(group))
			}
			stop()
			if err := java.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
