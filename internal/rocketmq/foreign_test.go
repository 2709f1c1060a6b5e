package rocketmq

import (
	"slices"
	"testing"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// What another member subscribes to is passed on as it is: neither an expression that this client would refuse for itself, nor
// a topic that it cannot read, keeps its groups from being joined.
func TestForeignSubscriptionsArePassedOn(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, ns, broker := one(t)
		static := routeTo("a")
		static.Mappings = []byte(`{"a":{"topic":"Static"}}`)
		ns.serveRoutes(map[string]*wire.TopicRoute{"T": routeTo("a"), "Static": static})
		c := n.start(t, nil)
		s := spec("G")
		foreign := []Subscription{
			{Topic: "Static", Expression: "kind=1 || kind=2", Type: FilterTag, Version: 3, Foreign: true},
			{Topic: "U", Expression: " || ", Type: FilterTag, Foreign: true},
			{Topic: "V", Expression: "x", Type: "OTHER", Foreign: true},
		}
		own := s.Subscriptions()
		s.Subscriptions = func() []Subscription { return append(slices.Clone(own), foreign...) }
		join(t, c, s)
		if err := c.Heartbeat(t.Context()); err != nil {
			t.Fatal(err)
		}
		beats := heartbeats(t, broker)
		told := beats[len(beats)-1].ConsumerDataSet[0].SubscriptionDataSet
		if len(told) != 5 {
			t.Fatalf("told %+v", told)
		}
		if d := told[1]; d.Topic != "Static" || d.SubString != "kind=1 || kind=2" || !slices.Equal(d.TagsSet, []string{"kind=1", "kind=2"}) || len(d.CodeSet) != 2 || d.SubVersion != 3 {
			t.Errorf("told %+v", d)
		}
		if d := told[2]; d.SubString != " || " || len(d.TagsSet) != 0 || d.ExpressionType != "TAG" {
			t.Errorf("told %+v", d)
		}
		if d := told[3]; d.SubString != "x" || d.ExpressionType != "OTHER" {
			t.Errorf("told %+v", d)
		}
	})
}
