package wire

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestDialects(t *testing.T) {
	t.Parallel()
	acting := false
	route := TopicRoute{
		Brokers: []BrokerData{{
			Addrs: IDTable[string]{0: "127.0.0.1:10911", 1: "127.0.0.1:11911"}, Name: "broker-a", Cluster: "DefaultCluster", EnableActingMaster: &acting,
		}},
		FilterServerTable: map[string][]string{},
		Queues:            []QueueData{{BrokerName: "broker-a", Perm: PermRead | PermWrite, ReadQueues: 4, WriteQueues: 4}},
	}
	// The sample of remoting-protocol.md 3.2.
	const bare = `{"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:10911",1:"127.0.0.1:11911"},"brokerName":"broker-a","cluster":"DefaultCluster","enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}`
	quoted := strings.NewReplacer(`{0:`, `{"0":`, `,1:`, `,"1":`).Replace(bare)
	for d, want := range map[Dialect]string{Fastjson: bare, Standard: quoted} {
		out, err := EncodeBody(&route, d)
		if err != nil || string(out) != want {
			t.Errorf("dialect %d: %s, %v; want %s", d, out, err, want)
		}
		var got TopicRoute
		if err := DecodeBody(out, &got); err != nil || !reflect.DeepEqual(got, route) {
			t.Errorf("dialect %d: %+v, %v", d, got, err)
		}
	}
}

func TestQueueTables(t *testing.T) {
	t.Parallel()
	// The sample of remoting-protocol.md 3.5, which Go clients read by cutting the text.
	const text = `{"offsetTable":{{"brokerName":"broker-a","queueId":1,"topic":"TopicTest"}:7,{"brokerName":"broker-a","queueId":2,"topic":"TopicTest"}:100}}`
	want := ResetOffsetBody{Offsets: QueueTable[int64]{
		{BrokerName: "broker-a", QueueID: 2, Topic: "TopicTest"}: 100,
		{BrokerName: "broker-a", QueueID: 1, Topic: "TopicTest"}: 7,
	}}
	for _, d := range []Dialect{Fastjson, Standard} {
		if out, err := EncodeBody(want, d); err != nil || string(out) != text {
			t.Errorf("dialect %d: %s, %v; want %s", d, out, err, text)
		}
	}
	for name, in := range map[string]string{
		"bare keys":    text,
		"string keys":  `{"offsetTable":{"{\"brokerName\":\"broker-a\",\"queueId\":1,\"topic\":\"TopicTest\"}":7,"{\"topic\":\"TopicTest\",\"queueId\":2,\"brokerName\":\"broker-a\"}":100}}`,
		"white space":  " { \"offsetTable\" : { { \"brokerName\":\"broker-a\", \"queueId\":1,\n\"topic\":\"TopicTest\" } : 7 , {\"brokerName\":\"broker-a\",\"queueId\":2,\"topic\":\"TopicTest\"}\t:100 } } ",
		"reference":    `{"offsetTable":{{"$ref":"$.mqPopTable.null"}:5,{"brokerName":"broker-a","queueId":1,"topic":"TopicTest"}:7,{"brokerName":"broker-a","queueId":2,"topic":"TopicTest"}:100}}`,
		"more members": `{"x":[1,{2:3}],"offsetTable":{{"brokerName":"broker-a","queueId":1,"topic":"TopicTest","y":null}:7,{"brokerName":"broker-a","queueId":2,"topic":"TopicTest"}:100}}`,
	} {
		var got ResetOffsetBody
		if err := DecodeBody([]byte(in), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestEmptyTables(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]ResetOffsetBody{
		`{}`:                   {},
		`{"offsetTable":null}`: {},
		`{"offsetTable":{}}`:   {Offsets: QueueTable[int64]{}},
	} {
		var got ResetOffsetBody
		if err := DecodeBody([]byte(in), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v, %v", in, got, err)
		}
		out, err := EncodeBody(&got, Fastjson)
		if wantText := strings.Replace(in, `{"offsetTable":null}`, `{}`, 1); err != nil || string(out) != wantText {
			t.Errorf("%s was encoded as %s, %v", in, out, err)
		}
	}
}

// TestRunningInfoProperties carries texts that could be taken for keys of another kind, and those that streamd's members tell
// each other.
func TestRunningInfoProperties(t *testing.T) {
	t.Parallel()
	info := ConsumerRunningInfo{
		Queues: QueueTable[ProcessQueueInfo]{
			{BrokerName: "b\"\\", QueueID: -1, Topic: "%RETRY%订单"}: {CommitOffset: 5, Locked: true, CachedCount: 3},
		},
		Properties: map[string]string{
			"{\"brokerName\":\"b\"}": "an object's text as a key", "12": "digits", "streamd.digest": `{"strategy":"averagely","result":[1,2]}`,
			"odd \x00 \u2028 <&>": "\x00{}", RunningVersion: OwnVersion.String(),
		},
		Status: map[string]ConsumeStatus{"T": {OKTPS: 1.5}},
	}
	for _, d := range []Dialect{Fastjson, Standard} {
		out, err := EncodeBody(&info, d)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(out), `{{"brokerName":"b\"\\","queueId":-1,"topic":"%RETRY%订单"}:{`) {
			t.Errorf("the queue is no bare key: %s", out)
		}
		var got ConsumerRunningInfo
		if err := DecodeBody(out, &got); err != nil || !reflect.DeepEqual(got, info) {
			t.Errorf("%+v, %v; want %+v", got, err, info)
		}
	}
}

func TestEnums(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]ConsumeResult{
		`"CR_LATER"`: ConsumeLater, `1`: ConsumeLater, `0`: ConsumeSuccess, `5`: ConsumeReturnedNull, `9`: "", `-1`: "", `"NEW_ONE"`: "NEW_ONE",
	} {
		var got ConsumeDirectlyResult
		if err := DecodeBody([]byte(`{"consumeResult":`+in+`}`), &got); err != nil || got.Result != want {
			t.Errorf("%s: %q, %v", in, got.Result, err)
		}
	}
	var c ConsumerData
	if err := DecodeBody([]byte(`{"consumeFromWhere":4,"consumeType":1,"messageModel":1}`), &c); err != nil ||
		c.ConsumeFromWhere != ConsumeFromFirstOffset || c.ConsumeType != ConsumePassively || c.MessageModel != Clustering {
		t.Errorf("%+v, %v", c, err)
	}
	if err := DecodeBody([]byte(`{"consumeType":[]}`), &c); !errors.Is(err, ErrMalformed) {
		t.Errorf("a list as enum: %v", err)
	}
}

func TestCodeSets(t *testing.T) {
	t.Parallel()
	var s SubscriptionData
	if err := DecodeBody([]byte(`{"codeSet":["2598919",-5]}`), &s); err != nil || !reflect.DeepEqual(s.CodeSet, CodeSet{2598919, -5}) {
		t.Errorf("%v, %v", s.CodeSet, err)
	}
	for _, bad := range []string{`{"codeSet":["x"]}`, `{"codeSet":[99999999999]}`, `{"codeSet":5}`} {
		if err := DecodeBody([]byte(bad), &s); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestBrokenBodies(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		``, `{`, `{"mqTable":{{"brokerName":"b"}}}`, `{"mqTable":{{"brokerName":"b":1}}`, `{"mqTable":{{"queueId":"x"}:{}}}`, `{"mqTable":{5:{}}}`,
		`{"mqTable":{x:{}}}`, `{} {}`, `{"properties":[1,]}`, `{"properties":{"a":1}}`, `{a}`, `{:1}`, `{"a":1 "b":2}`, `[1 2]`, `{"a" 1}`,
		`{"jstack":"\x"}`, strings.Repeat(`[`, 100000),
	} {
		var info ConsumerRunningInfo
		if err := DecodeBody([]byte(bad), &info); !errors.Is(err, ErrMalformed) {
			t.Errorf("%.60s: %v", bad, err)
		}
	}
	if _, err := EncodeBody(make(chan int), Fastjson); !errors.Is(err, ErrNotEncodable) {
		t.Errorf("a channel as body: %v", err)
	}
}

func TestQueueOrder(t *testing.T) {
	t.Parallel()
	sorted := []MessageQueue{{"b", 9, "A"}, {"a", 10, "B"}, {"b", 1, "B"}, {"b", 2, "B"}}
	for i, a := range sorted {
		for j, b := range sorted {
			if got := a.Compare(b); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%v.Compare(%v) = %d", a, b, got)
			}
		}
	}
}

func TestNewSubscriptionGroup(t *testing.T) {
	t.Parallel()
	out, err := EncodeBody(NewSubscriptionGroup("CG"), Standard)
	const want = `{"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,"consumeFromMinEnable":true,"groupName":"CG","notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,"whichBrokerWhenConsumeSlowly":1}`
	if err != nil || string(out) != want {
		t.Errorf("%s, %v", out, err)
	}
}
