package broker_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// sqlPull is the fields of a pull that brings its expression along.
func sqlPull(expression string, offset int64, hold time.Duration) ext {
	e := pullFields("G", "T", 0, offset, hold)
	e["expressionType"], e["subscription"], e["subVersion"] = "SQL92", expression, 1
	return e
}

func bodies(t *testing.T, a *wire.Command) string {
	t.Helper()
	var all []string
	for _, m := range decodeAll(t, a.Body) {
		all = append(all, string(m.Body))
	}
	return strings.Join(all, " ")
}

func TestSQL_filtersPulls(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	c := dialTCP(t, b, "c1")
	for _, m := range []broker.Message{
		{Body: []byte("one"), Tag: "red", Properties: map[string]string{"n": "1"}},
		{Body: []byte("two"), Tag: "blue", Properties: map[string]string{"n": "2"}},
		{Body: []byte("text"), Properties: map[string]string{"n": "x"}},
		{Body: []byte("none"), Tag: "red", Keys: "k1"},
	} {
		m.Topic = "T"
		if err := b.Put(m); err != nil {
			t.Fatal(err)
		}
	}
	for expression, want := range map[string]string{
		"n > 1": "two", "n <> 1": "two", "n IS NULL": "none", "NOT (n = 1)": "two", "TAGS = 'red'": "one none",
		"n IS NOT NULL AND n IN ('1', 'x')": "one text", "TRUE": "one two text none", "KEYS = 'k1' OR TAGS STARTSWITH 'b'": "two none",
		"n BETWEEN 1 AND 2": "one two", "UNIQ_KEY IS NOT NULL": "one two text none", "n NOT CONTAINS 'x'": "one two",
	} {
		if got := bodies(t, c.ok(wire.ReqPullMessage, sqlPull(expression, 0, 0), nil)); got != want {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
	none := c.call(wire.ReqPullMessage, sqlPull("n = 7", 1, 0), nil)
	if none.ResponseCode() != wire.RespPullRetryImmediately || none.Ext.Get("nextBeginOffset") != "4" || len(none.Body) != 0 {
		t.Errorf("nothing matches: %+v", none)
	}
	limited := sqlPull("n IS NOT NULL", 0, 0)
	limited["maxMsgNums"] = 1
	if a := c.ok(wire.ReqPullMessage, limited, nil); bodies(t, a) != "one" || a.Ext.Get("nextBeginOffset") != "1" {
		t.Errorf("one at a time: %+v", a)
	}
	for _, wrong := range []string{"n >< 0", "", "n = "} {
		a := c.call(wire.ReqPullMessage, sqlPull(wrong, 0, 0), nil)
		if a.ResponseCode() != wire.RespSubscriptionParseFailed || !strings.Contains(a.Remark, "line 1, column") {
			t.Errorf("%q: %d %q", wrong, a.Code, a.Remark)
		}
	}
	for offset, want := range map[int64]wire.ResponseCode{-1: wire.RespPullOffsetMoved, 4: wire.RespPullNotFound, 5: wire.RespPullOffsetMoved} {
		if a := c.call(wire.ReqPullMessage, sqlPull("TRUE", offset, 0), nil); a.ResponseCode() != want {
			t.Errorf("offset %d: %d, want %d", offset, a.Code, want)
		}
	}
	other := sqlPull("x", 0, 0)
	other["expressionType"] = "XPATH"
	if a := c.call(wire.ReqPullMessage, other, nil); a.Code != 1 {
		t.Errorf("unknown kind: %d", a.Code)
	}
}

// TestSQL_movesPastWhatDoesNotMatch is a reader far behind the only message that it wants.
func TestSQL_movesPastWhatDoesNotMatch(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	c := dialTCP(t, b, "c1")
	if err := b.Fill("T", 1, 2000, 10); err != nil {
		t.Fatal(err)
	}
	if err := b.Put(broker.Message{Topic: "T", Body: []byte("wanted"), Properties: map[string]string{"n": "1"}}); err != nil {
		t.Fatal(err)
	}
	var steps []string
	for offset := int64(0); ; {
		a := c.call(wire.ReqPullMessage, sqlPull("n = 1", offset, 0), nil)
		steps = append(steps, strconv.Itoa(int(a.Code))+"@"+a.Ext.Get("nextBeginOffset"))
		if a.ResponseCode() != wire.RespPullRetryImmediately {
			break
		}
		next, err := strconv.ParseInt(a.Ext.Get("nextBeginOffset"), 10, 64)
		if err != nil || next <= offset {
			t.Fatalf("after %v: %v", steps, err)
		}
		offset = next
	}
	if got := strings.Join(steps, " "); got != "20@800 20@1600 0@2001" {
		t.Errorf("steps %s", got)
	}
}

// sqlHeartbeat is a heartbeat of group S with an SQL92 subscription.
func sqlHeartbeat(t *testing.T, expression string, version int64) []byte {
	t.Helper()
	body, err := json.Marshal(wire.HeartbeatData{ClientID: "c1", ConsumerDataSet: []wire.ConsumerData{{
		ConsumeFromWhere: wire.ConsumeFromLastOffset, ConsumeType: wire.ConsumePassively, GroupName: "S", MessageModel: wire.Clustering,
		SubscriptionDataSet: []wire.SubscriptionData{{ExpressionType: "SQL92", SubString: expression, SubVersion: version, Topic: "T"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestSQL_registeredByHeartbeat(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	c := dialTCP(t, b, "c1")
	for _, n := range []string{"1", "2"} {
		if err := b.Put(broker.Message{Topic: "T", Body: []byte(n), Properties: map[string]string{"n": n}}); err != nil {
			t.Fatal(err)
		}
	}
	pull := func(version int64) *wire.Command {
		t.Helper()
		e := pullFields("S", "T", 0, 0, 0)
		e["sysFlag"], e["subVersion"], e["expressionType"] = 0, version, "SQL92"
		delete(e, "subscription")
		return c.call(wire.ReqPullMessage, e, nil)
	}
	for i, step := range []struct {
		expression  string
		version, at int64
		code        wire.ResponseCode
		want        string
	}{
		{"n = 1", 1, 1, wire.RespSuccess, "1"},
		{"n = 1", 1, 2, wire.RespSubscriptionNotLatest, ""},
		{"n = 2", 2, 2, wire.RespSuccess, "2"},
		{"n = 1", 1, 2, wire.RespSuccess, "2"}, // An older version changes nothing.
		{"n ><", 3, 3, wire.RespFilterDataNotExist, ""},
		{"n > 0", 4, 4, wire.RespSuccess, "1 2"},
	} {
		c.ok(wire.ReqHeartbeat, nil, sqlHeartbeat(t, step.expression, step.version))
		a := pull(step.at)
		if a.ResponseCode() != step.code || bodies(t, a) != step.want {
			t.Errorf("step %d: %d %q %q, want %d %q", i+1, a.Code, a.Remark, bodies(t, a), step.code, step.want)
		}
	}
}

func TestSQL_isCheckedBeforehand(t *testing.T) {
	t.Parallel()
	c := dialTCP(t, startBroker(t, broker.Config{}), "c1")
	for _, step := range []struct {
		kind, expression string
		code             wire.ResponseCode
		remark           string
	}{
		{"TAG", "a ||", wire.RespSuccess, ""},
		{"SQL92", "a > 0 AND TAGS <> 'TagC'", wire.RespSuccess, ""},
		{"SQL92", "a >< 0", wire.RespSubscriptionParseFailed, "line 1, column 4"},
		{"SQL92", "", wire.RespSubscriptionParseFailed, "line 1, column 1"},
		{"XPATH", "a", wire.RespSystemError, "XPATH"},
	} {
		body, err := json.Marshal(wire.CheckClientBody{ClientID: "c1", Group: "G", SubscriptionData: wire.SubscriptionData{
			ExpressionType: step.kind, SubString: step.expression, Topic: "T",
		}})
		if err != nil {
			t.Fatal(err)
		}
		a := c.call(wire.ReqCheckClientConfig, nil, body)
		if a.ResponseCode() != step.code || !strings.Contains(a.Remark, step.remark) {
			t.Errorf("%s %q: %d %q", step.kind, step.expression, a.Code, a.Remark)
		}
	}
	if settings := c.ok(wire.ReqGetBrokerConfig, nil, nil); !strings.Contains(string(settings.Body), "enablePropertyFilter=true\n") {
		t.Errorf("settings %s", settings.Body)
	}
}

// TestSQL_seesEachPartOfABatch also has the batch repeat a name, whose last value counts as in Java's map.
func TestSQL_seesEachPartOfABatch(t *testing.T) {
	t.Parallel()
	c := dialTCP(t, startBroker(t, broker.Config{}), "c1")
	var body []byte
	for _, n := range []string{"1", "2", "3"} {
		p := wire.BatchPart{Body: []byte(n), Properties: []byte("n\x01" + n + "\x02who\x01part\x02")}
		var err error
		if body, err = p.Append(body); err != nil {
			t.Fatal(err)
		}
	}
	a := c.call(wire.ReqSendBatchMessage, ext{"a": "PG", "b": "T", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1, "h": 0, "i": "who\x01batch\x02", "m": true}, body)
	if a.Code != 0 {
		t.Fatalf("batch: %d %q", a.Code, a.Remark)
	}
	for expression, want := range map[string]string{"n >= 2": "2 3", "n = 1 AND who = 'batch'": "1", "who = 'part'": ""} {
		if got := bodies(t, c.call(wire.ReqPullMessage, sqlPull(expression, 0, 0), nil)); got != want {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
}

// TestSQL_wakesHeldPulls holds a pull that a message which does not match must not wake.
func TestSQL_wakesHeldPulls(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		c, sender := dial(t, net.DialContext, b.Address(), "c1"), dial(t, net.DialContext, b.Address(), "p")
		b.CreateTopic("T", 1)
		pending := c.start(wire.ReqPullMessage, sqlPull("n > 1", 0, time.Minute), nil)
		if err := b.Await(t.Context(), func(b *broker.Broker) bool { return b.HeldPulls() == 1 }); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		sender.send("T", 0, "no", "n\x011\x02", nil)
		sender.send("T", 0, "no", "n\x01x\x02", nil)
		pause(t, 10*time.Second)
		sender.send("T", 0, "yes", "n\x012\x02", nil)
		if a := c.await(pending, time.Hour); bodies(t, a) != "yes" || a.Ext.Get("nextBeginOffset") != "3" || time.Since(start) != 10*time.Second {
			t.Errorf("after %v: %+v", time.Since(start), a)
		}
	})
}
