package groupview_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/groupview"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// javaInfo is what a Java push consumer (5.3.3) answers to 307: objects as keys, every number there, "droped".
const javaInfo = `{"jstack":null,"mqPopTable":{},"mqTable":{
{"brokerName":"broker-a","queueId":0,"topic":"Orders"}:{"cachedMsgCount":0,"cachedMsgMaxOffset":0,"cachedMsgMinOffset":0,"cachedMsgSizeInMiB":0,"commitOffset":4,"droped":false,"lastConsumeTimestamp":1700000000000,"lastLockTimestamp":1700000000000,"lastPullTimestamp":1700000000000,"locked":false,"transactionMsgCount":0,"transactionMsgMaxOffset":0,"transactionMsgMinOffset":0,"tryUnlockTimes":0},
{"brokerName":"broker-a","queueId":1,"topic":"Orders"}:{"cachedMsgCount":2,"cachedMsgMaxOffset":5,"cachedMsgMinOffset":4,"cachedMsgSizeInMiB":0,"commitOffset":4,"droped":false,"lastConsumeTimestamp":1700000000000,"lastLockTimestamp":1700000000000,"lastPullTimestamp":1700000000000,"locked":false,"transactionMsgCount":0,"transactionMsgMaxOffset":0,"transactionMsgMinOffset":0,"tryUnlockTimes":0},
{"brokerName":"broker-a","queueId":2,"topic":"Orders"}:{"cachedMsgCount":0,"cachedMsgMaxOffset":0,"cachedMsgMinOffset":0,"cachedMsgSizeInMiB":0,"commitOffset":4,"droped":true,"lastConsumeTimestamp":1700000000000,"lastLockTimestamp":1700000000000,"lastPullTimestamp":1700000000000,"locked":false,"transactionMsgCount":0,"transactionMsgMaxOffset":0,"transactionMsgMinOffset":0,"tryUnlockTimes":0}},
"properties":{"PROP_CLIENT_VERSION":"V5_3_3","PROP_CONSUMEORDERLY":"false","PROP_CONSUMER_START_TIMESTAMP":"1700000000000","PROP_CONSUME_TYPE":"CONSUME_PASSIVELY","PROP_NAMESERVER_ADDR":"10.0.0.9:9876","PROP_THREADPOOL_CORE_SIZE":"20","allocateMessageQueueStrategy":"org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely@1"},
"statusTable":{"Orders":{"consumeFailedMsgs":0,"consumeFailedTPS":0.0,"consumeOKTPS":0.0,"consumeRT":0.0,"pullRT":0.0,"pullTPS":0.0}},"subscriptionSet":[],"userConsumerInfo":{}}`

// javaGroup is a cluster with a group of one Java member, three queues each of 6 messages with 4 committed, and when the fifth
// was stored.
type javaGroup struct {
	t      *testing.T
	stored time.Time
}

// newJavaGroup has its fifth messages for at least age: the time counts from here, however long the reading takes.
func newJavaGroup(t *testing.T, age time.Duration) javaGroup {
	t.Helper()
	return javaGroup{t, time.Now().Add(-age)}
}

func (javaGroup) Queues(_ context.Context, topic string) ([]sdk.Queue, error) {
	if topic == "Orders" {
		return []sdk.Queue{{Topic: topic, Broker: "broker-a"}, {Topic: topic, Broker: "broker-a", ID: 1}, {Topic: topic, Broker: "broker-a", ID: 2}}, nil
	}
	return []sdk.Queue{{Topic: topic, Broker: "broker-a"}}, nil
}

func (javaGroup) ConsumerConnections(context.Context, string, string) (*wire.ConsumerConnections, error) {
	return &wire.ConsumerConnections{
		Connections:  []wire.Connection{{ClientID: "10.0.0.5@4711#1", Addr: "10.0.0.5:50000", Language: "JAVA"}},
		MessageModel: "CLUSTERING", ConsumeFromWhere: "CONSUME_FROM_LAST_OFFSET",
		Subscriptions: map[string]wire.SubscriptionData{"Orders": {Topic: "Orders", SubString: "*", ExpressionType: "TAG"}},
	}, nil
}

func (javaGroup) ConsumeStats(context.Context, string, string, string) (*wire.ConsumeStats, error) {
	s := &wire.ConsumeStats{Offsets: wire.QueueTable[wire.ConsumeOffset]{}}
	for id := range int32(3) {
		s.Offsets[wire.MessageQueue{Topic: "Orders", BrokerName: "broker-a", QueueID: id}] = wire.ConsumeOffset{BrokerOffset: 6, ConsumerOffset: 4}
	}
	return s, nil
}

func (g javaGroup) PeerInfo(context.Context, string, string) (*wire.ConsumerRunningInfo, error) {
	var info wire.ConsumerRunningInfo
	if err := wire.DecodeBody([]byte(javaInfo), &info); err != nil {
		g.t.Error(err)
	}
	return &info, nil
}

func (g javaGroup) Pull(_ context.Context, req *rocketmq.PullRequest) (*rocketmq.PullResult, error) {
	host := netip.MustParseAddrPort("10.0.0.1:10911")
	m := wire.Message{
		Topic: []byte(req.Queue.Topic), QueueID: req.Queue.ID, QueueOffset: req.Offset, Body: []byte("x"),
		BornHost: host, StoreHost: host, StoreMillis: g.stored.UnixMilli(),
	}
	body, err := m.Append(nil)
	return &rocketmq.PullResult{Status: rocketmq.PullFound, Next: req.Offset + 1, Max: 6, Body: body, Release: func() {}}, err
}

// A Java member tells no reason of its own, so the state follows from what it holds and how old the next message is.
func TestJavaMember(t *testing.T) {
	for name, c := range map[string]struct {
		age    time.Duration
		states [3]string
		why    [3]string
	}{
		"stands still for a while": {
			time.Minute,
			[3]string{groupview.StateHeld, groupview.StateActive, groupview.StateUnowned},
			[3]string{"its owner pulls nothing; look at the owner's log", "the message at offset 4 is unhandled for 1m", "no member has it"},
		},
		"has just begun": {
			time.Second,
			[3]string{groupview.StateActive, groupview.StateActive, groupview.StateUnowned},
			[3]string{"", "", "no member has it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := groupview.Read(t.Context(), newJavaGroup(t, c.age), "billing", nil)
			if err != nil {
				t.Fatal(err)
			}
			if m := g.Members; len(m) != 1 || m[0].Streamd != "" || m[0].Strategy != "averagely" || m[0].Silent != "" || m[0].Started.IsZero() {
				t.Fatalf("members = %+v", m)
			}
			n := 0
			for _, q := range g.Queues {
				if q.Topic != "Orders" {
					continue
				}
				if q.State != c.states[q.ID] || !strings.Contains(q.Why, c.why[q.ID]) || c.why[q.ID] == "" && q.Why != "" {
					t.Errorf("queue %d is %s: %q, want %s: %q", q.ID, q.State, q.Why, c.states[q.ID], c.why[q.ID])
				}
				n++
			}
			if n != 3 || g.Lag != 6 {
				t.Errorf("%d queues, lag %d, want 3 and 6", n, g.Lag)
			}
		})
	}
}

// A name that no broker takes is told before anybody is asked, with what is allowed.
func TestIllegalNames(t *testing.T) {
	for _, c := range []struct {
		group  string
		topics []string
		want   string
	}{
		{"my group", nil, `group "my group" has ' '`},
		{"", nil, "the group is empty"},
		{"billing", []string{"Orders", "a/b"}, `topic "a/b" has '/'`},
	} {
		if _, err := groupview.Read(t.Context(), nil, c.group, c.topics); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Read(%q, %q) = %v, want %s", c.group, c.topics, err, c.want)
		}
	}
	if _, err := groupview.Read(t.Context(), nil, "my group", nil); !strings.Contains(err.Error(), "letters, digits and %|-_ are allowed") {
		t.Errorf("%v: does not say what is allowed", err)
	}
}
