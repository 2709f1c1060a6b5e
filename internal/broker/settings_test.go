package broker_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func TestSettings_areChangedAllOrNone(t *testing.T) {
	t.Parallel()
	b, c := stocked(t)
	send := ext{"a": "PG", "b": "T", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1, "h": 0, "i": "", "m": false}
	fresh := ext{"a": "PG", "b": "Fresh", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1, "h": 0, "i": "", "m": false}
	long := strings.Repeat("x", 200)
	set := func(text string) step {
		return step{text, wire.ReqUpdateBrokerConfig, nil, text, 0, "", nil, nil, nil}
	}
	refused := func(text string, code wire.ResponseCode, remark string) step {
		return step{text, wire.ReqUpdateBrokerConfig, nil, text, code, remark, nil, nil, nil}
	}
	_, port, _ := strings.Cut(b.Address(), ":")
	runSteps(t, c, []step{
		{"", wire.ReqGetBrokerConfig, nil, "", 0, "", []string{"brokerName=broker-a\n", "brokerPermission=6\n", "autoCreateTopicEnable=true\n", "maxMessageSize=4194304\n", "listenPort=" + port + "\n"}, nil, nil},
		refused("nonsense", wire.RespInvalidParameter, "no setting nonsense"),
		refused("maxMessageSize=100\nfooBar=1\n", wire.RespInvalidParameter, "no setting fooBar"),
		refused("maxMessageSize=none", wire.RespInvalidParameter, "is no number from 1 to"),
		refused("maxMessageSize=99999999", wire.RespInvalidParameter, "is no number from 1 to"),
		refused("autoCreateTopicEnable=maybe", wire.RespInvalidParameter, "neither true nor false"),
		refused("brokerName=other", wire.RespInvalidParameter, "cannot be changed while the broker runs"),
		refused("brokerConfigPath=x", wire.RespNoPermission, "black list"),
		{"as before", wire.ReqSendMessageV2, send, long, 0, "", nil, nil, nil},
		set("maxMessageSize=100\n# a comment\nbrokerName=broker-a\n"),
		{"too long now", wire.ReqSendMessageV2, send, long, wire.RespMessageIllegal, "limit 100B", nil, nil, nil},
		set("maxMessageSize=1000\nbrokerPermission=4"),
		{"no sends now", wire.ReqSendMessageV2, send, "x", wire.RespNoPermission, "sending message is forbidden", nil, nil, nil},
		set("brokerPermission=2"),
		{"no pulls now", wire.ReqPullMessage, pullFields("G", "T", 0, 0, 0), "", wire.RespNoPermission, "pulling message is forbidden", nil, nil, nil},
		set("brokerPermission=6\nautoCreateTopicEnable=false\nautoCreateSubscriptionGroup=false\nmaxTransferCountOnMessageInMemory=1"),
		{"no new topics", wire.ReqSendMessageV2, fresh, "x", wire.RespTopicNotExist, "", nil, nil, nil},
		{"no new groups", wire.ReqPullMessage, pullFields("Fresh", "T", 0, 0, 0), "", wire.RespGroupNotExist, "", nil, nil, nil},
		{"one at a time", wire.ReqPullMessage, pullFields("G", "T", 0, 0, 0), "", 0, "", nil, nil, map[string]string{"nextBeginOffset": "1"}},
		set("autoCreateTopicEnable=true\nautoCreateSubscriptionGroup=true\nuseServerSideResetOffset=false"),
		{"new topics", wire.ReqSendMessageV2, fresh, "x", 0, "", nil, nil, nil},
		{"", wire.ReqGetBrokerConfig, nil, "", 0, "", []string{"useServerSideResetOffset=false\n", "maxMessageSize=1000\n"}, nil, nil},
	})
	if a := c.ok(wire.ReqGetBrokerConfig, nil, nil); !strings.Contains(a.Ext.Get("version"), `"counter":5,`) {
		t.Errorf("version %s", a.Ext.Get("version"))
	}
}

func TestNameServer_toolCodes(t *testing.T) {
	t.Parallel()
	b, c := stocked(t)
	_, port, _ := strings.Cut(b.Address(), ":")
	runSteps(t, c, []step{
		{"writable", wire.ReqGetRoute, ext{"topic": "T"}, "", 0, "", []string{`"perm":6`}, nil, nil},
		{"wipe", wire.ReqWipeWritePerm, ext{"brokerName": "broker-a"}, "", 0, "", nil, nil, nil},
		{"read only", wire.ReqGetRoute, ext{"topic": "T"}, "", 0, "", []string{`"perm":4`}, nil, nil},
		{"add", wire.ReqAddWritePerm, ext{"brokerName": "broker-a"}, "", 0, "", nil, nil, nil},
		{"writable", wire.ReqGetRoute, ext{"topic": "T"}, "", 0, "", []string{`"perm":6`}, nil, nil},
		{"nobody", wire.ReqWipeWritePerm, ext{"brokerName": "nobody"}, "", 0, "", nil, nil, map[string]string{"wipeTopicCount": "0"}},
		{"nobody", wire.ReqAddWritePerm, ext{"brokerName": "nobody"}, "", 0, "", nil, nil, map[string]string{"addTopicCount": "0"}},
		{"unnamed", wire.ReqWipeWritePerm, nil, "", 1, "brokerName", nil, nil, nil},
		{"", wire.ReqGetTopicsByCluster, ext{"cluster": "DefaultCluster"}, "", 0, "", []string{`"T"`, `"TBW102"`}, nil, nil},
		{"", wire.ReqGetTopicsByCluster, ext{"cluster": "X"}, "", 0, "", []string{`{"topicList":[]}`}, nil, nil},
		{"", wire.ReqGetSystemTopicsFromNameServer, nil, "", 0, "", []string{`["DefaultCluster","broker-a"]`, b.Address()}, nil, nil},
		{"", wire.ReqGetUnitTopics, nil, "", 0, "", []string{`{"topicList":[]}`}, nil, nil},
		{"a topic of a unit", wire.ReqUpdateAndCreateTopic, ext{"topic": "U", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6, "topicSysFlag": 3}, "", 0, "", nil, nil, nil},
		{"", wire.ReqGetUnitTopics, nil, "", 0, "", []string{`["U"]`}, nil, nil},
		{"", wire.ReqGetHasUnitSubTopics, nil, "", 0, "", []string{`["U"]`}, nil, nil},
		{"", wire.ReqGetHasUnitSubUnunitTopics, nil, "", 0, "", []string{`[]`}, nil, nil},
		{"", wire.ReqGetNameServerConfig, nil, "", 0, "", []string{"clusterTest=false\n", "listenPort=" + port + "\n"}, nil, nil},
		{"as it is", wire.ReqUpdateNameServerConfig, nil, "clusterTest=false\n", 0, "", nil, nil, nil},
		{"another", wire.ReqUpdateNameServerConfig, nil, "clusterTest=true\n", wire.RespInvalidParameter, "no setting clusterTest that can be changed", nil, nil, nil},
		{"put an order", wire.ReqPutKVConfig, ext{"namespace": "ORDER_TOPIC_CONFIG", "key": "T", "value": "broker-a:4"}, "", 0, "", nil, nil, nil},
		{"told", wire.ReqGetRoute, ext{"topic": "T"}, "", 0, "", []string{`"orderTopicConf":"broker-a:4"`}, nil, nil},
		{"off", wire.ReqUpdateNameServerConfig, nil, "orderMessageEnable=false", 0, "", nil, nil, nil},
		{"not told", wire.ReqGetRoute, ext{"topic": "T"}, "", 0, "", nil, []string{"orderTopicConf"}, nil},
		{"neither", wire.ReqUpdateNameServerConfig, nil, "orderMessageEnable=maybe", wire.RespInvalidParameter, "true or false", nil, nil, nil},
		{"", wire.ReqGetNameServerConfig, nil, "", 0, "", []string{"orderMessageEnable=false\n"}, nil, nil},
		{"", wire.ReqQueryDataVersion, ext{"brokerName": "broker-b"}, `{"counter":1}`, 0, "", nil, nil, map[string]string{"changed": "true"}},
		{"", wire.ReqGetBrokerMemberGroup, ext{"clusterName": "DefaultCluster", "brokerName": "broker-a"}, "", 0, "", []string{`"brokerAddrs":{0:"` + b.Address() + `"}`}, nil, nil},
		{"", wire.ReqGetBrokerMemberGroup, ext{"clusterName": "DefaultCluster", "brokerName": "x"}, "", 0, "", []string{`"brokerAddrs":{}`}, nil, nil},
		{"", wire.ReqBrokerHeartbeat, nil, "", 0, "", nil, nil, nil},
	})
}

// TestWipe_countsTopics holds what the tool prints.
func TestWipe_countsTopics(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	c := dialTCP(t, b, "c1")
	a := c.ok(wire.ReqWipeWritePerm, ext{"brokerName": "broker-a"}, nil)
	if got, want := a.Ext.Get("wipeTopicCount"), len(b.Topics()); got != strconv.Itoa(want) {
		t.Errorf("%s topics, want %d", got, want)
	}
}

func TestMode_pullOnly(t *testing.T) {
	t.Parallel()
	b, c := stocked(t)
	if err := b.Put(broker.Message{Topic: "Wide", Queue: 4, Body: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	d := dialTCP(t, b, "c2")
	d.heartbeat("G", map[string]string{"T": "*"})
	ask := func(client, strategy, model string) step {
		return step{client + " " + strategy, wire.ReqQueryAssignment, nil, `{"topic":"Wide","consumerGroup":"G","clientId":"` + client +
			`","strategyName":"` + strategy + `","messageModel":"` + model + `"}`, 0, "", nil, nil, nil}
	}
	holds := func(s step, ids ...string) step {
		for _, id := range []string{"0", "1", "2", "3", "4"} {
			part := `"queueId":` + id + ","
			s.lacks = append(s.lacks, part)
			for _, mine := range ids {
				if mine == id {
					s.lacks, s.holds = s.lacks[:len(s.lacks)-1], append(s.holds, part)
				}
			}
		}
		return s
	}
	unknown := ask("c1", "NOPE", "CLUSTERING")
	unknown.holds, unknown.lacks = []string{"{}"}, []string{"messageQueueAssignments"}
	runSteps(t, c, []step{
		holds(ask("c1", "AVG", "CLUSTERING"), "0", "1", "2"), holds(ask("c2", "AVG", "CLUSTERING"), "3", "4"),
		holds(ask("c1", "AVG_BY_CIRCLE", "CLUSTERING"), "0", "2", "4"), holds(ask("c2", "AVG_BY_CIRCLE", "CLUSTERING"), "1", "3"),
		holds(ask("c2", "AVG", "BROADCASTING"), "0", "1", "2", "3", "4"), holds(ask("stranger", "AVG", "CLUSTERING")), unknown,
		{"empty", wire.ReqQueryAssignment, nil, `{}`, 1, "no topic", nil, nil, nil},
		{"pull", wire.ReqSetMessageRequestMode, nil, `{"topic":"T","consumerGroup":"G","mode":"PULL"}`, 0, "", nil, nil, nil},
		{"pop", wire.ReqSetMessageRequestMode, nil, `{"topic":"T","consumerGroup":"G","mode":"POP"}`, wire.RespNotSupported, "no POP", nil, nil, nil},
		{"retry", wire.ReqSetMessageRequestMode, nil, `{"topic":"%RETRY%G","consumerGroup":"G","mode":"PULL"}`, wire.RespNoPermission, "retry topic", nil, nil, nil},
		{"", wire.ReqGetAllMessageRequestMode, nil, "", 0, "", []string{`{"messageRequestModeMap":{}}`}, nil, nil},
	})
}
