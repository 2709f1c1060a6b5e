package broker_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// step is one request and what its answer must be.
type step struct {
	name   string
	code   wire.RequestCode
	fields ext
	body   string
	want   wire.ResponseCode
	remark string            // part of the remark
	holds  []string          // parts of the answer's body
	lacks  []string          // what must not be in it
	fieldz map[string]string // header fields of the answer
}

func runSteps(t *testing.T, c *rawClient, steps []step) {
	t.Helper()
	for i, s := range steps {
		a := c.call(s.code, s.fields, []byte(s.body))
		bad := a.ResponseCode() != s.want || !strings.Contains(a.Remark, s.remark)
		for _, part := range s.holds {
			bad = bad || !strings.Contains(string(a.Body), part)
		}
		for _, part := range s.lacks {
			bad = bad || strings.Contains(string(a.Body), part)
		}
		for key, want := range s.fieldz {
			bad = bad || a.Ext.Get(key) != want
		}
		if bad {
			t.Errorf("step %d, %v %s: code %d %q, fields %v, body %s", i+1, s.code, s.name, a.Code, a.Remark, a.Ext, a.Body)
		}
	}
}

// stocked is a broker with a few messages, a producer, and a group that is half-way through.
func stocked(t *testing.T) (*broker.Broker, *rawClient) {
	t.Helper()
	b := startBroker(t, broker.Config{})
	c := dialTCP(t, b, "c1")
	c.heartbeat("G", map[string]string{"T": "*"})
	for _, n := range []string{"1", "2", "3"} {
		c.send("T", 0, n, "TAGS\x01red\x02n\x01"+n+"\x02UNIQ_KEY\x01U"+n+"\x02KEYS\x01all k"+n+"\x02", nil)
	}
	c.ok(wire.ReqPullMessage, pullFields("G", "T", 0, 0, 0), nil)
	c.ok(wire.ReqUpdateConsumerOffset, ext{"consumerGroup": "G", "topic": "T", "queueId": 0, "commitOffset": 1}, nil)
	return b, c
}

func TestStatistics(t *testing.T) {
	t.Parallel()
	b, c := stocked(t)
	c.ok(wire.ReqSendBack, ext{"group": "G", "offset": b.Messages("T")[0].LogOffset, "delayLevel": 1}, nil)
	for name, of := range map[string]string{
		"TOPIC_PUT_NUMS": "T", "TOPIC_PUT_SIZE": "T", "GROUP_GET_NUMS": "T@G", "GROUP_GET_SIZE": "T@G", "SNDBCK_PUT_NUMS": "T@G",
		"BROKER_PUT_NUMS": "DefaultCluster", "BROKER_GET_NUMS": "DefaultCluster",
	} {
		var got wire.BrokerStats
		a := c.ok(wire.ReqViewBrokerStats, ext{"statsName": name, "statsKey": of}, nil)
		if err := wire.DecodeBody(a.Body, &got); err != nil {
			t.Fatal(err)
		}
		want := int64(3)
		if name == "SNDBCK_PUT_NUMS" {
			want = 1
		}
		sized := strings.HasSuffix(name, "_SIZE") && got.Minute.Sum > 3*90
		if got.Minute.Sum != want && !sized || got.Minute.TPS <= 0 || got.Day.Sum != got.Minute.Sum || got.Hour.Average <= 0 {
			t.Errorf("%s of %s: %+v", name, of, got)
		}
	}
	runSteps(t, c, []step{
		{"of nothing", wire.ReqViewBrokerStats, ext{"statsName": "TOPIC_PUT_NUMS", "statsKey": "X"}, "", 1, "The stats <TOPIC_PUT_NUMS> <X> not exist", nil, nil, nil},
		{"without a key", wire.ReqViewBrokerStats, ext{"statsName": "TOPIC_PUT_NUMS"}, "", 1, "statsKey", nil, nil, nil},
		{"delete", wire.ReqDeleteTopicInBroker, ext{"topic": "T"}, "", 0, "", nil, nil, nil},
		{"of what was deleted", wire.ReqViewBrokerStats, ext{"statsName": "GROUP_GET_NUMS", "statsKey": "T@G"}, "", 1, "not exist", nil, nil, nil},
	})
}

func TestRuntimeInfo_hasWhatToolsRead(t *testing.T) {
	t.Parallel()
	b, c := stocked(t)
	c.call(wire.ReqSendMessageV2, ext{"b": "bad name", "e": 0}, []byte("x"))
	var info wire.KVTable
	if err := wire.DecodeBody(c.ok(wire.ReqGetBrokerRuntimeInfo, nil, nil).Body, &info); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"msgPutTotalTodayNow": "3", "msgGetTotalTodayNow": "3", "msgPutTotalTodayMorning": "0", "msgPutTotalYesterdayMorning": "0",
		"putMessageTimesTotal": "3", "putMessageFailedTimes": "1", "sendThreadPoolQueueSize": "0", "commitLogMinOffset": "0", "timerCongestNum": "0",
		"brokerVersionDesc": "V5_3_3", "brokerActive": "true",
	} {
		if info.Table[name] != want {
			t.Errorf("%s is %q, want %q", name, info.Table[name], want)
		}
	}
	for _, name := range []string{"putTps", "getTransferredTps", "getFoundTps", "getMissTps", "getTotalTps"} {
		if len(strings.Split(info.Table[name], " ")) != 3 {
			t.Errorf("%s is %q", name, info.Table[name])
		}
	}
	for _, name := range []string{ // What clusterList, brokerStatus and exportMetrics parse.
		"sendThreadPoolQueueHeadWaitTimeMills", "pullThreadPoolQueueSize", "pullThreadPoolQueueHeadWaitTimeMills", "pageCacheLockTimeMills",
		"earliestMessageTimeStamp", "commitLogDiskRatio", "consumeQueueDiskRatio", "timerReadBehind", "timerOffsetBehind", "timerEnqueueTps",
		"timerDequeueTps", "runtime", "bootTimestamp", "putMessageAverageSize", "putMessageSizeTotal", "commitLogMaxOffset", "commitLogDirCapacity",
		"putMessageEntireTimeMax", "putMessageDistributeTime", "putLatency99", "putLatency999", "getMessageEntireTimeMax",
	} {
		if info.Table[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
	if b.Messages("T")[0].Stored.UnixMilli() <= 0 || info.Table["earliestMessageTimeStamp"] == "-1" {
		t.Errorf("earliestMessageTimeStamp %s", info.Table["earliestMessageTimeStamp"])
	}
}

func TestProgress_overAllGroups(t *testing.T) {
	t.Parallel()
	b, c := stocked(t)
	var all wire.BrokerConsumeStats
	if err := wire.DecodeBody(c.ok(wire.ReqGetBrokerConsumeStats, ext{"isOrder": false}, nil).Body, &all); err != nil {
		t.Fatal(err)
	}
	queue := wire.MessageQueue{BrokerName: "broker-a", Topic: "T"}
	if all.BrokerAddr != b.Address() || all.TotalDiff != 2 || len(all.Groups) != 1 || len(all.Groups[0]["G"]) != 1 {
		t.Fatalf("317: %+v", all)
	}
	if o := all.Groups[0]["G"][0]; o.Offsets[queue].ConsumerOffset != 1 || o.Offsets[queue].BrokerOffset != 3 || o.TPS <= 0 {
		t.Errorf("317: %+v", o)
	}
	runSteps(t, c, []step{
		{"only ordered topics", wire.ReqGetBrokerConsumeStats, ext{"isOrder": true}, "", 0, "", []string{`"consumeStatsList":[{"G":[]}]`, `"totalDiff":0`}, nil, nil},
		{"without a field", wire.ReqGetBrokerConsumeStats, nil, "", 1, "isOrder", nil, nil, nil},
		{"", wire.ReqGetConsumeStats, ext{"consumerGroup": "G"}, "", 0, "", []string{`"consumerOffset":1`}, []string{`"consumeTps":0,`}, nil},
		{"", wire.ReqGetTopicStats, ext{"topic": "T"}, "", 0, "", []string{`"maxOffset":3`}, []string{`"topicPutTps":0}`}, nil},
		{"", wire.ReqGetAllConsumerOffset, nil, "", 0, "", []string{`"groupTopicMap":{"G":["T"]}`, `"offsetTable":{"T@G":{0:1}}`}, nil, nil},
		{"other group behind", wire.ReqUpdateSubscriptionGroup, nil, `{"groupName":"H"}`, 0, "", nil, nil, nil},
		{"", wire.ReqUpdateConsumerOffset, ext{"consumerGroup": "H", "topic": "T", "queueId": 0, "commitOffset": 0}, "", 0, "", nil, nil, nil},
		{"lowest", wire.ReqQueryCorrectionOffset, ext{"topic": "T", "compareGroup": "G", "filterGroups": ""}, "", 0, "", []string{`{"correctionOffsets":{0:0}}`}, nil, nil},
		{"lowest but for", wire.ReqQueryCorrectionOffset, ext{"topic": "T", "compareGroup": "G", "filterGroups": "H,X"}, "", 0, "", []string{`{"correctionOffsets":{0:1}}`}, nil, nil},
		{"compared with nobody", wire.ReqQueryCorrectionOffset, ext{"topic": "T", "compareGroup": "X"}, "", 0, "", []string{`{"correctionOffsets":{}}`}, nil, nil},
		{"without a topic", wire.ReqQueryCorrectionOffset, nil, "", 1, "topic", nil, nil, nil},
	})
}

func TestConsumeQueue(t *testing.T) {
	t.Parallel()
	_, c := stocked(t)
	c.ok(wire.ReqHeartbeat, nil, sqlHeartbeat(t, "n > 1", 1))
	at := func(more ext) ext {
		e := ext{"topic": "T", "queueId": 0, "index": 0, "count": 10}
		maps.Copy(e, more)
		return e
	}
	runSteps(t, c, []step{
		{"all", wire.ReqQueryConsumeQueue, at(nil), "", 0, "", []string{`"maxQueueIndex":3`, `"minQueueIndex":0`, `"physicOffset":0`, `"tagsCode":112785`}, []string{"subscriptionData"}, nil},
		{"one", wire.ReqQueryConsumeQueue, at(ext{"index": 1, "count": 1}), "", 0, "", []string{`"maxQueueIndex":3`}, []string{`"physicOffset":0,`}, nil},
		{"of a group by tags", wire.ReqQueryConsumeQueue, at(ext{"consumerGroup": "G"}), "", 0, "", []string{`"filterData":"null"`, `"subString":"*"`}, []string{`"eval":true`}, nil},
		{"of a group by SQL", wire.ReqQueryConsumeQueue, at(ext{"consumerGroup": "S"}), "", 0, "", []string{`n > 1`, `"eval":false`, `"eval":true`}, nil, nil},
		{"beyond", wire.ReqQueryConsumeQueue, at(ext{"index": 99}), "", 0, "Index 99 of 0@T is not exist!", []string{`"queueData":[]`}, nil, nil},
		{"no such queue", wire.ReqQueryConsumeQueue, at(ext{"queueId": 3}), "", 1, "3@T is not exist!", nil, nil, nil},
		{"no such topic", wire.ReqQueryConsumeQueue, at(ext{"topic": "X"}), "", 1, "0@X is not exist!", nil, nil, nil},
		{"wild", wire.ReqQueryConsumeQueue, at(ext{"index": -5, "count": -5}), "", 0, "", []string{`"queueData":[]`}, nil, nil},
	})
}

func TestQueryByKey(t *testing.T) {
	t.Parallel()
	_, c := stocked(t)
	query := func(more ext) string {
		t.Helper()
		e := ext{"topic": "T", "key": "all", "maxNum": 32, "beginTimestamp": 0, "endTimestamp": int64(1) << 62, "_UNIQUE_KEY_QUERY": false}
		maps.Copy(e, more)
		a := c.call(wire.ReqQueryMessage, e, nil)
		if a.ResponseCode() == wire.RespQueryNotFound && a.Ext.Get("indexLastUpdateTimestamp") == "0" {
			return "none"
		}
		return bodies(t, a)
	}
	for i, s := range []struct {
		fields ext
		want   string
	}{
		{nil, "1 2 3"},
		{ext{"maxNum": 2}, "2 3"},
		{ext{"maxNum": 1}, "3"},
		{ext{"maxNum": 0}, "none"},
		{ext{"maxNum": -1}, "none"},
		{ext{"key": "k2"}, "2"},
		{ext{"key": "U3"}, "3"},
		{ext{"key": "U3", "_UNIQUE_KEY_QUERY": true, "maxNum": 0}, "3"},
		{ext{"key": "red"}, "none"},
		{ext{"topic": "X"}, "none"},
		{ext{"endTimestamp": 1}, "none"},
		{ext{"beginTimestamp": int64(1) << 61}, "none"},
	} {
		if got := query(s.fields); got != s.want {
			t.Errorf("query %d: %q, want %q", i+1, got, s.want)
		}
	}
}

func TestForbidden_keepsAGroupFromATopic(t *testing.T) {
	t.Parallel()
	_, c := stocked(t)
	pull := pullFields("G", "T", 0, 0, 0)
	pull["sysFlag"] = 0
	of := func(more ext) ext {
		e := ext{"group": "G", "topic": "T"}
		maps.Copy(e, more)
		return e
	}
	runSteps(t, c, []step{
		{"look", wire.ReqGroupForbidden, of(nil), "", 0, "", []string{`{"group":"G","readable":true,"topic":"T"}`}, nil, nil},
		{"allowed", wire.ReqPullMessage, pull, "", 0, "", nil, nil, nil},
		{"forbid", wire.ReqGroupForbidden, of(ext{"readable": false}), "", 0, "", []string{`"readable":false`}, nil, nil},
		{"look", wire.ReqGroupForbidden, of(nil), "", 0, "", []string{`"readable":false`}, nil, nil},
		{"forbidden", wire.ReqPullMessage, pull, "", wire.RespNoPermission, "is forbidden for topic[T]", nil, nil, nil},
		{"allow", wire.ReqGroupForbidden, of(ext{"readable": true}), "", 0, "", []string{`"readable":true`}, nil, nil},
		{"allowed", wire.ReqPullMessage, pull, "", 0, "", nil, nil, nil},
		{"without a group", wire.ReqGroupForbidden, ext{"topic": "T"}, "", 1, "group", nil, nil, nil},
	})
}

func TestLists_ofTopicsAndGroups(t *testing.T) {
	t.Parallel()
	_, c := stocked(t)
	const one = `{"topicName":"L1","readQueueNums":2,"writeQueueNums":3,"perm":6,"topicFilterType":"SINGLE_TAG"}`
	runSteps(t, c, []step{
		{"one is wrong", wire.ReqUpdateAndCreateTopicList, nil, `{"topicConfigList":[` + one + `,{"topicName":"bad name"}]}`, wire.RespInvalidParameter, "illegal characters", nil, nil, nil},
		{"so none is there", wire.ReqGetTopicConfig, ext{"topic": "L1"}, "", wire.RespTopicNotExist, "", nil, nil, nil},
		{"too many queues", wire.ReqUpdateAndCreateTopicList, nil, `{"topicConfigList":[{"topicName":"L9","readQueueNums":70000}]}`, wire.RespInvalidParameter, "70000 queues", nil, nil, nil},
		{"make", wire.ReqUpdateAndCreateTopicList, nil, `{"topicConfigList":[` + one + `]}`, 0, "", nil, nil, nil},
		{"there", wire.ReqGetTopicConfig, ext{"topic": "L1"}, "", 0, "", []string{`"readQueueNums":2`, `"writeQueueNums":3`, `"attributes":{}`}, nil, nil},
		{"make", wire.ReqUpdateSubscriptionGroupList, nil, `{"groupConfigList":[{"groupName":"A","retryMaxTimes":3},{"groupName":"B"}]}`, 0, "", nil, nil, nil},
		{"there", wire.ReqGetSubscriptionGroupConfig, ext{"group": "A"}, "", 0, "", []string{`"retryMaxTimes":3`, `"consumeEnable":true`}, nil, nil},
		{"there", wire.ReqGetSubscriptionGroupConfig, ext{"group": "B"}, "", 0, "", []string{`"retryMaxTimes":16`}, nil, nil},
		{"a group without name", wire.ReqUpdateSubscriptionGroupList, nil, `{"groupConfigList":[{"groupName":"C"},{}]}`, 1, "groupName", nil, nil, nil},
		{"so none is there", wire.ReqGetSubscriptionGroupConfig, ext{"group": "C"}, "", wire.RespGroupNotExist, "", nil, nil, nil},
		{"no list", wire.ReqUpdateAndCreateTopicList, nil, `[`, 1, "", nil, nil, nil},
		{"", wire.ReqGetSystemTopicsFromBroker, nil, "", 0, "", []string{`"TBW102"`, `"broker-a"`, `"DefaultCluster_REPLY_TOPIC"`}, []string{`"T"`, `"L1"`}, nil},
		{"", wire.ReqGetAllProducers, nil, "", 0, "", []string{`"CLIENT_INNER_PRODUCER":[{"clientId":"c1"`, `"remoteIP":"/127.0.0.1:`}, nil, nil},
		{"an unknown attribute", wire.ReqUpdateAndCreateTopic, ext{"topic": "L2", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6, "attributes": "+bad.attr=1"}, "", 1, "unsupported key: bad.attr", nil, nil, nil},
		{"a kind that is not there", wire.ReqUpdateAndCreateTopic, ext{"topic": "L2", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6, "attributes": "+cleanup.policy=COMPACTION"}, "", wire.RespInvalidParameter, "DELETE is", nil, nil, nil},
		{"", wire.ReqCleanExpiredConsumeQueue, nil, "", 0, "", nil, nil, nil},
		{"", wire.ReqCleanUnusedTopic, nil, "", 0, "", nil, nil, nil},
		{"", wire.ReqDeleteExpiredCommitLog, nil, "", 0, "", nil, nil, nil},
	})
}

func TestAbsent_saysWhy(t *testing.T) {
	t.Parallel()
	_, c := stocked(t)
	for code, want := range map[wire.RequestCode]string{
		wire.ReqPopMessage: "no POP", wire.ReqAckMessage: "no POP", wire.ReqBatchAckMessage: "no POP", wire.ReqUpdateStaticTopic: "no static topics",
		wire.ReqResetMasterFlushOffset: "no replicas", wire.ReqGetBrokerEpoch: "no controller", wire.ReqUpdateColdData: "no cold data",
		wire.ReqCheckRocksDB: "RocksDB", 60: "no replicas", 1005: "no controller", 3001: "accounts", 50: "accounts", 9999: " request type 9999 not supported",
	} {
		if a := c.call(code, nil, nil); a.ResponseCode() != wire.RespNotSupported || !strings.Contains(a.Remark, want) {
			t.Errorf("%v: %d %q", code, a.Code, a.Remark)
		}
	}
}

// TestKnownCodes_areSupported goes through all codes that have a name here but for those that are absent or sent to clients.
func TestKnownCodes_areSupported(t *testing.T) {
	t.Parallel()
	_, c := stocked(t)
	notAsked := []wire.RequestCode{ // For clients, of brokers among themselves, or not answered to an unknown outcome.
		wire.ReqCheckTransactionState, wire.ReqNotifyConsumerIDsChanged, wire.ReqResetConsumerClientOffset,
		wire.ReqGetConsumerStatusOfClient, wire.ReqPushReplyMessage, wire.ReqRegisterTopicInNameServer, wire.ReqEndTransaction,
	}
	known := 0
	for code := range wire.RequestCode(201_000) {
		if code.String() == strconv.Itoa(int(code)) {
			continue
		}
		known++
		if slices.Contains(notAsked, code) {
			continue
		}
		a := c.call(code, nil, nil)
		reason := strings.TrimPrefix(a.Remark, " request type "+strconv.Itoa(int(code))+" not supported")
		if a.ResponseCode() == wire.RespNotSupported && !strings.HasPrefix(reason, ": this broker") {
			t.Errorf("%v: %q", code, a.Remark)
		}
	}
	if known < 100 {
		t.Errorf("only %d codes have names", known)
	}
}
