package fromgroup_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/brokertest"
	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/fromgroup"
	"github.com/streamd/streamd/internal/groupview"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
)

// address is the test's broker, in errors.
var address = regexp.MustCompile(`\(127\.0\.0\.1:[0-9]+\)`)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// java is what a Java push consumer (5.3.3) tells of itself when nothing but the group is set, and what is changed.
func java(changed map[string]string) map[string]string {
	p := map[string]string{
		"allocateMessageQueueStrategy": "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely@48bef49",
		"clientRebalance":              "true", "consumeConcurrentlyMaxSpan": "2000", "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
		"consumeMessageBatchMaxSize": "1", "consumeThreadMax": "20", "consumeThreadMin": "20", "consumeTimeout": "15",
		"consumeTimestamp": "20261129135301", "enableTrace": "false", "language": "JAVA", "maxReconsumeTimes": "-1",
		"messageModel": "CLUSTERING", "pullBatchSize": "32", "pullBatchSizeInBytes": "262144", "pullThresholdForQueue": "1000",
		"pullThresholdForTopic": "-1", "pullThresholdSizeForQueue": "100", "pullThresholdSizeForTopic": "-1", "useHeartbeatV2": "false",
		"useTLS": "false", wire.RunningOrderly: "false", wire.RunningThreads: "20", wire.RunningVersion: "V5_3_3",
	}
	maps.Copy(p, changed)
	return p
}

// member is one of a test's group.
type member struct {
	id         string
	told       map[string]string // nil: it does not answer
	topics     []rocketmq.Subscription
	owns       []wire.MessageQueue
	from       rocketmq.FromWhere
	broadcasts bool
}

func (m member) join(t *testing.T, b *broker.Broker, group string) {
	t.Helper()
	if m.from == "" {
		m.from = rocketmq.FromLast
	}
	retry := rocketmq.Subscription{Topic: wire.RetryTopic(group), Expression: "*", Type: rocketmq.FilterTag, Version: 1}
	all := append([]rocketmq.Subscription{retry}, m.topics...)
	spec := rocketmq.GroupSpec{Name: group, FromWhere: m.from, Broadcasting: m.broadcasts, Subscriptions: func() []rocketmq.Subscription { return all }}
	if m.told != nil {
		spec.RunningInfo = func(bool) *wire.ConsumerRunningInfo {
			info := &wire.ConsumerRunningInfo{Properties: m.told, Queues: wire.QueueTable[wire.ProcessQueueInfo]{}}
			for _, q := range m.owns {
				info.Queues[q] = wire.ProcessQueueInfo{}
			}
			for _, s := range all {
				data, err := wire.NewSubscriptionData(s.Topic, string(s.Type), s.Expression, 1)
				if err != nil {
					t.Error(err)
				}
				info.Subscriptions = append(info.Subscriptions, data)
			}
			return info
		}
	}
	brokertest.Join(t, b, m.id, spec)
}

func tags(topic, expression string) rocketmq.Subscription {
	return rocketmq.Subscription{Topic: topic, Expression: expression, Type: rocketmq.FilterTag, Version: 1}
}

func sql(topic, expression string) rocketmq.Subscription {
	return rocketmq.Subscription{Topic: topic, Expression: expression, Type: rocketmq.FilterSQL92, Version: 1}
}

// plainCluster is a cluster without keys.
func plainCluster() fromgroup.Broker {
	return fromgroup.Broker{NameServers: []string{"mq-ns1:9876", "mq-ns2:9876"}}
}

// TestDraft holds the configs of groups of all kinds against golden files, and each against the config's own checks.
func TestDraft(t *testing.T) {
	for name, c := range map[string]struct {
		members []member
		prepare func(*broker.Broker)
		topics  []string
		cluster fromgroup.Broker
	}{
		"java": {members: []member{
			{id: "10.0.0.1@1#1", told: java(nil), topics: []rocketmq.Subscription{tags("Orders", "created || paid"), sql("Payments", "amount > 100 AND note <> '${env:HOME}'")}},
			{id: "10.0.0.2@2#2", told: java(nil), topics: []rocketmq.Subscription{tags("Orders", "paid||created"), sql("Payments", "amount > 100 AND note <> '${env:HOME}'")}},
		}},
		"ordered": {members: []member{{id: "10.0.0.1@1#1", told: java(map[string]string{
			wire.RunningOrderly: "true", "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET", wire.RunningThreads: "8", "consumeTimeout": "3", "enableTrace": "true",
			"allocateMessageQueueStrategy": "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle@1",
		}), topics: []rocketmq.Subscription{tags("Orders", "*")}, from: rocketmq.FromFirst}}},
		"tuned": {members: []member{{id: "10.0.0.1@1#1", told: java(map[string]string{
			"consumeMessageBatchMaxSize": "64", "consumeTimeout": "5", "maxReconsumeTimes": "5", "pullBatchSize": "128", "pullThresholdForQueue": "5000",
			"pullThresholdSizeForQueue": "200", "pullThresholdSizeForTopic": "512", "pullThresholdForTopic": "20000", "useHeartbeatV2": "true", "useTLS": "true",
		}), topics: []rocketmq.Subscription{tags("Orders", "*")}}}},
		"broadcasting": {members: []member{{
			id: "10.0.0.1@1#1", broadcasts: true, told: java(map[string]string{"messageModel": "BROADCASTING"}), topics: []rocketmq.Subscription{tags("Prices", "*")},
		}}},
		"unlike": {members: []member{
			{id: "10.0.0.1@1#1", told: java(nil), topics: []rocketmq.Subscription{tags("Orders", "a")}},
			{id: "10.0.0.2@2#2", told: java(map[string]string{"consumeMessageBatchMaxSize": "8", wire.RunningThreads: "40"}), topics: []rocketmq.Subscription{tags("Orders", "a"), tags("Payments", "*")}},
			{id: "10.0.0.3@3#3", told: java(map[string]string{"clientRebalance": "false", "allocateMessageQueueStrategy": "com.acme.Ours@1"}), topics: []rocketmq.Subscription{tags("Orders", "b")}},
		}},
		"silent": {members: []member{{id: "10.0.0.1@1#1", topics: []rocketmq.Subscription{tags("Orders", "a")}}}},
		"machine_room": {members: []member{{id: "10.0.0.1@1#1", told: java(map[string]string{
			"allocateMessageQueueStrategy": "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom@1",
		}), topics: []rocketmq.Subscription{tags("Orders", "*")}, owns: []wire.MessageQueue{{Topic: "Orders", BrokerName: "west@a"}, {Topic: "Orders", BrokerName: "east@b"}}}}},
		"configured": {members: []member{{id: "10.0.0.1@1#1", told: java(map[string]string{
			"allocateMessageQueueStrategy": "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig@1",
		}), topics: []rocketmq.Subscription{tags("Orders", "*")}}}},
		"nearby": {members: []member{{id: "10.0.0.1@1#1", told: java(map[string]string{
			"allocateMessageQueueStrategy": "org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby@1",
		}), topics: []rocketmq.Subscription{tags("Orders", "*")}}}},
		"timestamp": {members: []member{{id: "10.0.0.1@1#1", from: rocketmq.FromTimestamp, told: java(map[string]string{
			"consumeFromWhere": "CONSUME_FROM_TIMESTAMP", "allocateMessageQueueStrategy": "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash@1",
		}), topics: []rocketmq.Subscription{tags("Orders", "*")}}}},
		"go": {members: []member{{id: "10.0.0.1@1#1", told: map[string]string{wire.RunningOrderly: "false", "PROP_CLIENT_VERSION": "V2"}, topics: []rocketmq.Subscription{tags("Orders", "*")}}}},
		"streamd": {members: []member{{id: "10.0.0.1@1#1", told: map[string]string{
			allocate.PropertyStreamd: "v1", wire.RunningOrderly: "true", "maxReconsumeTimes": "3", wire.RunningThreads: "20", "messageModel": "CLUSTERING",
			runtime.PeerInfoProperty: `{"version":"v1","stream":"orders","state":"running","strategy":"sticky","order":"key"}`,
		}, topics: []rocketmq.Subscription{tags("Orders", "*")}}}},
		"offline": {prepare: func(b *broker.Broker) {
			g := b.NewGroup("billing")
			g.RetryMaxTimes, g.ConsumeEnable = 4, false
			b.PutGroup(g)
			b.CreateTopic(wire.RetryTopic("billing"), 1)
			b.Commit("billing", "Orders", 0, 0)
			b.Commit("billing", wire.RetryTopic("billing"), 0, 0)
		}, topics: []string{"Payments"}},
		"never_used": {prepare: func(b *broker.Broker) { b.PutGroup(b.NewGroup("billing")) }},
		"keys": {
			prepare: func(b *broker.Broker) { b.PutGroup(b.NewGroup("billing")) },
			cluster: fromgroup.Broker{
				Name: "prod", NameServers: []string{"mq:9876"}, AccessKey: "streamd-billing", SecretKey: "[redacted]", Namespace: "INST_1",
				TLS: &config.ClientTLS{CA: "/etc/ca.pem", ServerName: "mq.example.org"},
			},
			topics: []string{"Orders"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := brokertest.Start(t)
			for _, topic := range []string{"Orders", "Payments", "Prices"} {
				b.CreateTopic(topic, 2)
			}
			if c.prepare != nil {
				c.prepare(b)
			}
			for _, m := range c.members {
				m.join(t, b, "billing")
			}
			facts, err := fromgroup.Read(t.Context(), brokertest.Client(t, b, "tool"), "billing", c.topics)
			if err != nil {
				t.Fatal(err)
			}
			for i, n := range facts.Notes {
				facts.Notes[i] = address.ReplaceAllString(n, "(mq:10911)")
			}
			facts.Time = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
			if c.cluster.NameServers == nil {
				c.cluster = plainCluster()
			}
			draft := facts.Draft(c.cluster)
			golden(t, name, draft)
			valid(t, draft)
		})
	}
}

func golden(t *testing.T, name string, d *fromgroup.Draft) {
	t.Helper()
	path := filepath.Join("testdata", name+".yaml")
	text := d.Text
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, []byte(text)) {
		t.Errorf("not what %s has (-update writes it):\n%s", path, text)
	}
	flat := strings.Join(strings.Fields(strings.ReplaceAll(d.Text, "\n#", " ")), " ")
	for _, w := range d.Warnings {
		if !strings.Contains(flat, strings.Join(strings.Fields(w), " ")) {
			t.Errorf("the file does not warn: %s", w)
		}
	}
}

func valid(t *testing.T, d *fromgroup.Draft) *config.Config {
	t.Helper()
	t.Setenv("ROCKETMQ_SECRET_KEY", "a secret of the test")
	path := filepath.Join(t.TempDir(), "streamd.yaml")
	if err := os.WriteFile(path, []byte(d.Text), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(config.Options{Paths: []string{path}, Strategies: allocate.Names()})
	if err != nil {
		t.Fatalf("%v\n%s", err, d.Text)
	}
	return loaded.Config
}

// What the draft means, beside what it looks like.
func TestDraft_meansTheGroup(t *testing.T) {
	b := brokertest.Start(t)
	b.CreateTopic("Orders", 2)
	b.CreateTopic("Payments", 2)
	expression := "amount > 100 AND note <> '${env:HOME}' AND q = '\"#: '"
	member{id: "10.0.0.1@1#1", told: java(map[string]string{
		"maxReconsumeTimes": "5", wire.RunningThreads: "7", "pullThresholdForQueue": "3000", "consumeTimeout": "2",
	}), topics: []rocketmq.Subscription{tags("Orders", "a || b"), sql("Payments", expression)}}.join(t, b, "billing")
	facts, err := fromgroup.Read(t.Context(), brokertest.Client(t, b, "tool"), "billing", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := valid(t, facts.Draft(plainCluster())).Streams[0]
	if s.Group != "billing" || s.Retry.MaxRetries != 5 || s.Concurrency != 7 || s.Deadline != 2*time.Minute || s.Window.Messages != 3000 || s.Window.Span != 3000 {
		t.Errorf("stream %+v", s)
	}
	if len(s.Subscribe) != 2 || s.Subscribe[0].Tags != "a || b" || s.Subscribe[1].SQL != expression {
		t.Errorf("subscriptions %+v", s.Subscribe)
	}
}

// A member chooses what it tells: nothing of it becomes a key of the config, and the file stays one that can be read.
func TestDraft_ofAHostileMember(t *testing.T) {
	nasty := "x\nstreams: []\n\u2028\u0085- y: \x00\x7f \xff ${env:HOME} # z"
	told := java(nil)
	for name := range told {
		told[name] = nasty
	}
	facts := &fromgroup.Facts{
		Group: "billing", Members: []fromgroup.Member{{ClientID: nasty, Language: nasty, Version: nasty, Told: told, Strategy: nasty, Order: "none"}},
		Topics: []fromgroup.Topic{{Name: "Orders", Filters: []fromgroup.Filter{{Type: "SQL92", Expression: "a = '\x7f" + nasty + "'", Source: nasty}, {Type: "TAG", Expression: nasty, Members: []string{nasty}}}}},
		Notes:  []string{nasty},
	}
	c := valid(t, facts.Draft(plainCluster()))
	if len(c.Streams) != 1 || c.Streams[0].Group != "billing" {
		t.Errorf("%+v", c.Streams)
	}
}

// stale is a cluster whose brokers list offsets of a topic that no member subscribes to any more.
type stale struct{ *rocketmq.Client }

func (s stale) ConsumeStats(ctx context.Context, broker, group, topic string) (*wire.ConsumeStats, error) {
	stats, err := s.Client.ConsumeStats(ctx, broker, group, topic)
	if err == nil {
		stats.Offsets[wire.MessageQueue{Topic: "Payments", BrokerName: broker}] = wire.ConsumeOffset{}
	}
	return stats, err
}

// A topic that was given up is left out: a member that subscribed to it would be unlike the others.
func TestRead_forsakenTopic(t *testing.T) {
	b := brokertest.Start(t)
	b.CreateTopic("Orders", 2)
	b.CreateTopic("Payments", 2)
	member{id: "10.0.0.1@1#1", told: java(nil), topics: []rocketmq.Subscription{tags("Orders", "*")}}.join(t, b, "billing")
	facts, err := fromgroup.Read(t.Context(), stale{brokertest.Client(t, b, "tool")}, "billing", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(facts.Topics) != 1 || facts.Topics[0].Name != "Orders" || len(facts.Notes) != 1 || !strings.Contains(facts.Notes[0], "Payments") {
		t.Errorf("topics %+v, notes %q", facts.Topics, facts.Notes)
	}
}

func TestRead_unknownGroup(t *testing.T) {
	b := brokertest.Start(t)
	b.CreateTopic("Orders", 1)
	_, err := fromgroup.Read(t.Context(), brokertest.Client(t, b, "tool"), "nobody", []string{"Orders"})
	if !errors.Is(err, groupview.ErrUnknownGroup) {
		t.Errorf("Read = %v, want ErrUnknownGroup", err)
	}
}

// Without the right on the group nobody tells anything: no config is made up of that, whether the group's retry topic shows
// that it is there or not.
func TestRead_refused(t *testing.T) {
	for name, topics := range map[string][]string{"with a retry topic": {wire.RetryTopic("billing")}, "without": nil} {
		t.Run(name, func(t *testing.T) {
			b := brokertest.StartGuarded(t, func(_ netip.Addr, cmd *wire.Command) (string, bool) {
				code := cmd.RequestCode()
				return "User:app has no permission to access Group:billing from 127.0.0.1, no matched policies.",
					code != wire.ReqGetSubscriptionGroupConfig && code != wire.ReqGetConsumerConnections && code != wire.ReqGetConsumeStats
			})
			for _, topic := range topics {
				b.CreateTopic(topic, 1)
			}
			_, err := fromgroup.Read(t.Context(), brokertest.Client(t, b, "tool"), "billing", nil)
			if r, refused := rocketmq.AccessRefused(err); !refused || r.Resource != "Group:billing" || errors.Is(err, groupview.ErrUnknownGroup) {
				t.Errorf("Read = %v", err)
			}
		})
	}
}

func TestNew(t *testing.T) {
	for name, topics := range map[string][]string{"new": {"Orders"}, "new_empty": nil} {
		group := "billing"
		if topics == nil {
			group = ""
		}
		d, err := fromgroup.New(plainCluster(), group, topics)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, d)
		valid(t, d)
	}
	if _, err := fromgroup.New(plainCluster(), "not a name", nil); !errors.Is(err, wire.ErrName) {
		t.Errorf("New = %v", err)
	}
}
