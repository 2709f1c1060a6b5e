package broker_test

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func TestBatch_partsGetTheBatchsProperties(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	c := dialTCP(t, b, "c1")
	var body []byte
	for _, p := range []wire.BatchPart{
		{Body: []byte("one"), Properties: []byte("KEYS\x01k1\x02UNIQ_KEY\x01OWN1\x02TAGS\x01red\x02")},
		{Flag: 7, Body: []byte("two"), Properties: []byte("UNIQ_KEY\x01OWN2")}, // no closing separator
	} {
		var err error
		if body, err = p.Append(body); err != nil {
			t.Fatal(err)
		}
	}
	e := ext{"a": "PG", "b": "T", "c": "TBW102", "d": 4, "e": 1, "f": 0, "g": 1, "h": 0, "i": "UNIQ_KEY\x01WHOLE\x02WAIT\x01true\x02", "m": true}
	a := c.ok(wire.ReqSendBatchMessage, e, body)
	if ids := strings.Split(a.Ext.Get("msgId"), ","); len(ids) != 2 || a.Ext.Get("transactionId") != "WHOLE" || a.Ext.Get("queueOffset") != "0" {
		t.Errorf("answer %+v", a.Ext)
	}
	m := decodeAll(t, c.pull("G", "T", 1, 0).Body)
	if len(m) != 2 || m[1].Flag != 7 || m[1].QueueOffset != 1 {
		t.Fatalf("messages %+v", m)
	}
	for i, want := range []string{
		"KEYS=k1 UNIQ_KEY=OWN1 TAGS=red UNIQ_KEY=WHOLE WAIT=true MSG_REGION=DefaultRegion TRACE_ON=true CLUSTER=DefaultCluster",
		"UNIQ_KEY=OWN2 UNIQ_KEY=WHOLE WAIT=true MSG_REGION=DefaultRegion TRACE_ON=true CLUSTER=DefaultCluster",
	} {
		got := strings.TrimSpace(strings.NewReplacer("\x01", "=", "\x02", " ").Replace(string(m[i].Properties)))
		if got != want {
			t.Errorf("part %d: %s\nwant %s", i, got, want)
		}
	}
	e["i"] = "DELAY\x011\x02"
	if a := c.call(wire.ReqSendBatchMessage, e, body); a.ResponseCode() != wire.RespMessageIllegal {
		t.Errorf("batch with a delay: %d", a.Code)
	}
	e["i"] = ""
	if a := c.call(wire.ReqSendBatchMessage, e, body[:len(body)-1]); a.ResponseCode() != wire.RespMessageIllegal {
		t.Errorf("broken batch: %d", a.Code)
	}
	if n := len(b.Messages("T")); n != 2 {
		t.Errorf("%d messages: a refused batch must store nothing", n)
	}
}

func TestSendToRetryTopic_isDeadLetteredBeyondTheLimit(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{DelayLevels: []time.Duration{time.Hour}})
	c := dialTCP(t, b, "c1")
	retry := func(n int) { t.Helper(); c.send("%RETRY%G", 0, "x", "DELAY\x013\x02", ext{"j": n, "l": 2}) }
	retry(2)
	if len(b.DeadLetters("G")) != 0 || b.Delayed() != 1 {
		t.Fatal("attempts are left: the message must be delayed")
	}
	retry(3)
	dead := b.DeadLetters("G")
	if len(dead) != 1 || dead[0].Properties["DELAY"] != "-1" || dead[0].ReconsumeTimes != 3 {
		t.Fatalf("dead letters %+v", dead)
	}
	// A queue lock of the group marks an orderly consumer: what it sends there has been given up.
	body, err := wire.EncodeBody(wire.LockBody{ClientID: "c1", Group: "G", Queues: []wire.MessageQueue{{BrokerName: "broker-a", Topic: "T"}}}, wire.Standard)
	if err != nil {
		t.Fatal(err)
	}
	c.ok(wire.ReqLockQueues, nil, body)
	retry(1)
	if n := len(b.DeadLetters("G")); n != 2 {
		t.Errorf("%d dead letters", n)
	}
}

func TestSendBack_limitsAndSettings(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{DelayLevels: []time.Duration{time.Hour}})
	c := dialTCP(t, b, "c1")
	c.send("T", 0, "x", "", nil)
	back := func(level int, more ext) *wire.Command {
		t.Helper()
		e := ext{"group": "G", "offset": b.Messages("T")[0].LogOffset, "delayLevel": level}
		maps.Copy(e, more)
		return c.call(wire.ReqSendBack, e, nil)
	}
	if a := back(-1, nil); a.Code != 0 || len(b.DeadLetters("G")) != 1 {
		t.Errorf("level -1: %d", a.Code)
	}
	if p := b.DeadLetters("G")[0].Properties; p["REAL_TOPIC"] != "" || p["DELAY"] != "0" || p["RETRY_TOPIC"] != "T" {
		t.Errorf("straight dead letter: %v", p)
	}
	if back(0, ext{"maxReconsumeTimes": 0}); len(b.DeadLetters("G")) != 2 {
		t.Error("no retries allowed: must be a dead letter")
	}
	g := b.NewGroup("G")
	g.RetryMaxTimes = 0
	b.PutGroup(g)
	if back(0, nil); len(b.DeadLetters("G")) != 3 {
		t.Error("the group allows no retries: must be a dead letter")
	}
	g.RetryMaxTimes, g.RetryQueues = 16, 0
	b.PutGroup(g)
	if a := back(0, nil); a.Code != 0 || len(b.DeadLetters("G")) != 3 || b.Delayed() != 0 {
		t.Error("without retry queues 36 is answered and nothing stored")
	}
	g.RetryQueues = 1
	b.PutGroup(g)
	topic, _ := b.Topic("%RETRY%G")
	topic.Perm = wire.PermRead
	b.PutTopic(topic)
	if a := back(0, nil); a.ResponseCode() != wire.RespNoPermission {
		t.Errorf("retry topic without write permission: %d", a.Code)
	}
	b.Expire("T", 0, 1)
	if a := c.call(wire.ReqSendBack, ext{"group": "G", "offset": 0, "delayLevel": 0}, nil); a.Code == 0 {
		t.Error("an expired message was sent back")
	}
}

func TestPull_subscriptionRules(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	c := dialTCP(t, b, "c1")
	for _, tag := range []string{"red", "green", "", "blue"} {
		if err := b.Put(broker.Message{Topic: "T", Body: []byte(tag), Tag: tag}); err != nil {
			t.Fatal(err)
		}
	}
	e := pullFields("G", "T", 0, 0, 0)
	e["subscription"] = "red || blue"
	m := decodeAll(t, c.ok(wire.ReqPullMessage, e, nil).Body)
	if len(m) != 2 || string(m[0].Body) != "red" || string(m[1].Body) != "blue" {
		t.Errorf("by tag: %+v", m)
	}
	e["subscription"] = " || "
	if a := c.call(wire.ReqPullMessage, e, nil); a.ResponseCode() != wire.RespSubscriptionParseFailed {
		t.Errorf("no tag: %d", a.Code)
	}
	registered := pullFields("G", "T", 0, 0, 0)
	registered["sysFlag"] = 0
	pull := func() wire.ResponseCode {
		t.Helper()
		return c.call(wire.ReqPullMessage, registered, nil).ResponseCode()
	}
	if got := pull(); got != wire.RespSubscriptionNotExist {
		t.Errorf("nobody registered: %d", got)
	}
	c.heartbeat("G", map[string]string{"other": "*"})
	if got := pull(); got != wire.RespSubscriptionNotExist {
		t.Errorf("topic not registered: %d", got)
	}
	c.heartbeat("G", map[string]string{"T": "*"})
	registered["subVersion"] = 2
	if got := pull(); got != wire.RespSubscriptionNotLatest {
		t.Errorf("older registration: %d", got)
	}
	registered["subVersion"] = 1
	if got := pull(); got != wire.RespSuccess {
		t.Errorf("registered: %d", got)
	}
}

func TestPull_limits(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{PullMessages: 10, PullBytes: 4096})
	c := dialTCP(t, b, "c1")
	if err := b.Fill("T", 1, 20, 10); err != nil {
		t.Fatal(err)
	}
	if n := len(decodeAll(t, c.pull("G", "T", 0, 0).Body)); n != 10 {
		t.Errorf("%d small messages, want 10", n)
	}
	if err := b.Fill("Big", 1, 2, 8192); err != nil {
		t.Fatal(err)
	}
	if n := len(decodeAll(t, c.pull("G", "Big", 0, 0).Body)); n != 1 {
		t.Errorf("%d big messages, want 1: the first always fits", n)
	}
}

func TestTwoBrokers_shareOneNameServer(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, twoBrokers)
}

// twoBrokers is on a network in memory: of the machine's ports another process may take one while its broker is stopped.
func twoBrokers(t *testing.T) {
	t.Helper()
	var net memnet.Network
	names := broker.NewNameServer(broker.NameServerConfig{Listen: net.Listen, Address: "10.0.0.1:0"})
	if err := names.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := names.Close(); err != nil {
			t.Error(err)
		}
	})
	a := startBroker(t, broker.Config{Name: "broker-a", NameServer: names, Listen: net.Listen, Address: "10.0.0.1:0"})
	b := startBroker(t, broker.Config{Name: "broker-b", NameServer: names, Listen: net.Listen, Address: "10.0.0.1:0"})
	a.CreateTopic("T", 2)
	b.CreateTopic("T", 3)
	ask := func(c *rawClient) wire.TopicRoute {
		t.Helper()
		var route wire.TopicRoute
		if err := wire.DecodeBody(c.ok(wire.ReqGetRoute, ext{"topic": "T"}, nil).Body, &route); err != nil {
			t.Fatal(err)
		}
		return route
	}
	route := ask(dial(t, net.DialContext, a.Address(), "c1"))
	if len(route.Queues) != 2 || route.Queues[1].BrokerName != "broker-b" || route.Queues[1].ReadQueues != 3 || route.Brokers[1].Addrs[0] != b.Address() {
		t.Errorf("route %+v", route)
	}
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	if route := ask(dial(t, net.DialContext, a.Address(), "c1")); len(route.Queues) != 1 {
		t.Errorf("route with one broker down: %+v", route)
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	c := dial(t, net.DialContext, a.Address(), "c1")
	body := []byte(`{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":{"topicName":"T","perm":6,"readQueueNums":1,"writeQueueNums":1}}}}`)
	c.ok(wire.ReqRegisterBroker, ext{"brokerName": "broker-c", "brokerAddr": "10.0.0.9:10911", "clusterName": "DefaultCluster", "haServerAddr": "10.0.0.9:10912", "brokerId": 0}, body)
	var cluster wire.ClusterInfo
	if err := wire.DecodeBody(c.ok(wire.ReqGetClusterInfo, nil, nil).Body, &cluster); err != nil {
		t.Fatal(err)
	}
	if len(ask(c).Queues) != 3 || len(cluster.Clusters["DefaultCluster"]) != 3 {
		t.Errorf("with a registered broker: %+v", cluster)
	}
	c.close()
	synctest.Wait() // Its end is noticed by the reading goroutine.
	if n := len(ask(dial(t, net.DialContext, a.Address(), "c2")).Queues); n != 2 {
		t.Errorf("%d queues are in the route when the registered broker's connection has ended", n)
	}
}

func TestStopStart_keepsWhatIsStored(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, stopStart)
}

// stopStart is on a network in memory, as twoBrokers is.
func stopStart(t *testing.T) {
	t.Helper()
	var net memnet.Network
	b := startBroker(t, broker.Config{Listen: net.Listen, Address: "10.0.0.1:0"})
	c := dial(t, net.DialContext, b.Address(), "c1")
	c.send("T", 0, "x", "", nil)
	c.heartbeat("G", map[string]string{"T": "*"})
	b.Commit("G", "T", 0, 1)
	address := b.Address()
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	<-c.gone
	if len(b.Members("G")) != 0 {
		t.Error("a restart forgets members")
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	if b.Address() != address {
		t.Errorf("address %s, was %s", b.Address(), address)
	}
	c = dial(t, net.DialContext, b.Address(), "c1")
	if p := c.pull("G", "T", 0, 0); p.Code != 0 {
		t.Errorf("pull: %d %q", p.Code, p.Remark)
	}
	if offset, ok := b.Committed("G", "T", 0); !ok || offset != 1 {
		t.Errorf("committed %d %t", offset, ok)
	}
}

// TestSend_toATopicWithoutQueues is refused when the sender leaves the queue open, too: nobody could read it.
func TestSend_toATopicWithoutQueues(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	b.CreateTopic("Empty", 0)
	c := dialTCP(t, b, "c1")
	for name, a := range map[string]*wire.Command{
		"queue 0": c.send("Empty", 0, "x", "", nil), "any queue": c.send("Empty", -1, "x", "", nil), "made by this send": c.send("New", -1, "x", "", ext{"d": 0}),
	} {
		if a.Code == 0 {
			t.Errorf("%s: success, %v", name, a.Ext)
		}
	}
	if n := len(b.Messages("Empty")) + len(b.Messages("New")); n != 0 {
		t.Errorf("%d messages are stored", n)
	}
}
