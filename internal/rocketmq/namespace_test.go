package rocketmq

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// TestNamespace_requests: names get their namespace last, and what is signed has it.
func TestNamespace_requests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header wire.Request
		want   map[string]string
	}{
		"route":  {&wire.RouteRequest{Topic: "Orders"}, map[string]string{"topic": "INST_1%Orders"}},
		"system": {&wire.RouteRequest{Topic: wire.DefaultTopic}, map[string]string{"topic": "TBW102"}},
		"pull":   {&wire.PullRequest{Group: "billing", Topic: "%RETRY%billing"}, map[string]string{"topic": "%RETRY%INST_1%billing", "consumerGroup": "INST_1%billing"}},
		"send":   {&wire.SendRequest{Op: wire.ReqSendMessageV2, Topic: "Invoices", ProducerGroup: wire.InnerProducerGroup}, map[string]string{"b": "INST_1%Invoices", "a": wire.InnerProducerGroup}},
		"back":   {&wire.SendBackRequest{Group: "billing", OriginTopic: wire.Some("Orders")}, map[string]string{"group": "INST_1%billing", "originTopic": "INST_1%Orders"}},
	} {
		var signed string
		finish := Config{Namespace: "INST_1", Sign: func(cmd *wire.Command) error {
			text, err := json.Marshal(cmd.Ext.Map())
			signed = string(text)
			return err
		}}.finish()
		cmd := wire.NewRequest(c.header, nil)
		if err := finish(cmd); err != nil {
			t.Fatal(err)
		}
		for key, want := range c.want {
			if got := cmd.Ext.Get(key); got != want || !strings.Contains(signed, want) {
				t.Errorf("%s: %s = %q, want %q; signed %s", name, key, got, want, signed)
			}
		}
	}
	if (Config{}).finish() != nil {
		t.Error("nothing to do, and it is done at each request")
	}
}

// TestNamespace_v2 leaves names alone and says so in two fields, as namespace.jsonl has it of Java's client.
func TestNamespace_v2(t *testing.T) {
	t.Parallel()
	cmd := wire.NewRequest(&wire.RouteRequest{Topic: "TopicTest"}, nil)
	if err := (Config{NamespaceV2: "INST_1"}).finish()(cmd); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"topic": "TopicTest", "ns": "INST_1", "nsd": "true"}
	if got := cmd.Ext.Map(); !reflect.DeepEqual(got, want) {
		t.Errorf("fields %v, want %v", got, want)
	}
}

// TestNamespace_bodies: what is told in bodies has it too, and what comes back loses it.
func TestNamespace_bodies(t *testing.T) {
	t.Parallel()
	c := &Client{cfg: Config{Namespace: "INST_1"}}
	beat := &wire.HeartbeatData{ConsumerDataSet: []wire.ConsumerData{{
		GroupName: "billing", SubscriptionDataSet: []wire.SubscriptionData{{Topic: "Orders"}, {Topic: "%RETRY%billing"}},
	}}}
	told := c.wiredHeartbeat(beat).ConsumerDataSet[0]
	if told.GroupName != "INST_1%billing" || told.SubscriptionDataSet[0].Topic != "INST_1%Orders" || told.SubscriptionDataSet[1].Topic != "%RETRY%INST_1%billing" {
		t.Errorf("heartbeat %+v", told)
	}
	if own := beat.ConsumerDataSet[0]; own.GroupName != "billing" || own.SubscriptionDataSet[0].Topic != "Orders" {
		t.Errorf("our own data became %+v", own)
	}
	info := &wire.ConsumerRunningInfo{
		Queues:        wire.QueueTable[wire.ProcessQueueInfo]{{Topic: "Orders", BrokerName: "a", QueueID: 1}: {CommitOffset: 7}},
		Status:        map[string]wire.ConsumeStatus{"Orders": {}},
		Subscriptions: []wire.SubscriptionData{{Topic: "Orders"}},
		Properties:    map[string]string{"streamd.peer": "Orders/a/1"},
	}
	wired := c.changed(info, c.wired)
	if wired.Queues[wire.MessageQueue{Topic: "INST_1%Orders", BrokerName: "a", QueueID: 1}].CommitOffset != 7 || wired.Subscriptions[0].Topic != "INST_1%Orders" {
		t.Errorf("running info %+v", wired)
	}
	if back := c.changed(wired, c.plain); !reflect.DeepEqual(back, info) {
		t.Errorf("running info came back as %+v, want %+v", back, info)
	}
	table := c.plainSubscriptions(map[string]wire.SubscriptionData{"INST_1%Orders": {Topic: "INST_1%Orders"}})
	if table["Orders"].Topic != "Orders" || len(table) != 1 {
		t.Errorf("subscriptions %+v", table)
	}
	m := &OutgoingMessage{Topic: "%RETRY%billing", Body: []byte("x"), Properties: map[string]string{wire.PropRetryTopic: "Orders", wire.PropUniqueKey: "U"}}
	if p := c.propertiesOf(m); p[wire.PropRetryTopic] != "INST_1%Orders" || p[wire.PropInstanceID] != "INST_1" {
		t.Errorf("properties %v", p)
	}
	if p := c.propertiesOf(&OutgoingMessage{Topic: "T", Properties: map[string]string{wire.PropUniqueKey: "U"}}); p[wire.PropRetryTopic] != "" {
		t.Errorf("properties %v", p)
	}
}
