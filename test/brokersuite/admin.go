package brokersuite

import (
	"slices"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func adminScenarios() []Scenario {
	return []Scenario{
		{"admin-topic", adminTopic},
		{"admin-topic-lists", adminTopicLists},
		{"admin-group", adminGroup},
		{"admin-progress", adminProgress},
		{"admin-reset", adminReset},
		{"admin-clone", adminClone},
		{"admin-broker", adminBroker},
		{"admin-queue", adminQueue},
	}
}

func topicFields(name string) fields {
	return fields{
		"topic": name, "defaultTopic": "TBW102", "readQueueNums": 2, "writeQueueNums": 2, "perm": 6, "topicFilterType": "SINGLE_TAG",
		"topicSysFlag": 0, "order": false,
	}
}

func adminTopic(s *session) {
	name := s.name("T")
	put := func(step string, more fields) {
		s.ask(step, wire.ReqUpdateAndCreateTopic, topicFields(name).with(more), nil)
	}
	get := func(step, topic string) { s.ask(step, wire.ReqGetTopicConfig, fields{"topic": topic}, nil) }
	put("create", nil)
	get("created", name)
	put("more queues", fields{"readQueueNums": 8, "writeQueueNums": 4})
	get("updated", name)
	put("fewer queues, read only", fields{"readQueueNums": 1, "writeQueueNums": 1, "perm": 4, "order": true})
	get("read only", name)
	put("the same again", fields{"readQueueNums": 1, "writeQueueNums": 1, "perm": 4, "order": true})
	put("no queues", fields{"topic": s.name("none"), "readQueueNums": 0, "writeQueueNums": 0})
	put("negative queues", fields{"topic": s.name("negative"), "readQueueNums": -1, "writeQueueNums": -1})
	put("attributes", fields{"topic": s.name("A"), "attributes": "+message.type=FIFO"})
	get("with attributes", s.name("A"))
	put("attribute that is not known", fields{"topic": s.name("B"), "attributes": "+hue=red"})
	put("attribute taken away", fields{"topic": s.name("A"), "attributes": "-message.type"})
	put("dot in the name", fields{"topic": "bs.topic"})
	put("blank in the name", fields{"topic": "bs topic"})
	put("name of 128", fields{"topic": strings.Repeat("t", 128)})
	put("name of 127", fields{"topic": strings.Repeat("t", 126) + "2"})
	put("empty name", fields{"topic": ""})
	put("no name", fields{"topic": nil})
	put("system topic", fields{"topic": wire.ScheduleTopic})
	put("template", fields{"topic": wire.DefaultTopic})
	put("no permission given", fields{"topic": s.name("P"), "perm": nil})
	put("odd permission", fields{"topic": s.name("P"), "perm": 99})
	get("unknown", s.name("absent"))
	noTPS := func(v *view) { v.drop = func(path string) bool { return strings.HasSuffix(path, "/topicPutTps") } }
	s.ask("statistics", wire.ReqGetTopicStats, fields{"topic": name}, nil, noTPS)
	s.ask("statistics of an unknown topic", wire.ReqGetTopicStats, fields{"topic": s.name("absent")}, nil)
	full := s.topic("full", 2)
	s.fill(full, 1, 3)
	s.ask("statistics of a topic with messages", wire.ReqGetTopicStats, fields{"topic": full}, nil, noTPS)
	s.ask("delete", wire.ReqDeleteTopicInBroker, fields{"topic": full}, nil)
	get("deleted", full)
	s.ask("delete again", wire.ReqDeleteTopicInBroker, fields{"topic": full}, nil)
	s.ask("delete a system topic", wire.ReqDeleteTopicInBroker, fields{"topic": wire.ScheduleTopic}, nil)
	s.ask("delete without name", wire.ReqDeleteTopicInBroker, nil, nil)
	s.ask("pull of a deleted topic", wire.ReqPullMessage, pullFields(s.name("G"), full, 0, 0), nil)
	s.do(s.main, wire.ReqUpdateAndCreateTopic, topicFields(full), nil)
	s.ask("made anew it is empty", wire.ReqGetMaxOffset, fields{"topic": full, "queueId": 1}, nil)
	list := toJSON(s.tb, fields{"topicConfigList": []fields{{
		"topicName": s.name("L"), "readQueueNums": 3, "writeQueueNums": 3, "perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": false,
		"attributes": fields{},
	}}})
	s.ask("create by a list", 18, nil, list)
	get("created by a list", s.name("L"))
}

// mine keeps what belongs to the scenario in a body that lists everything.
func (s *session) mine(levels ...string) shape {
	return func(v *view) {
		v.only = func(path string) bool {
			for _, l := range levels {
				if name, ok := strings.CutPrefix(path, l+"/"); ok && !strings.Contains(name, "/") {
					return strings.Contains(name, s.name(""))
				}
			}
			return true
		}
		v.drop = isVersion
	}
}

func isVersion(path string) bool { return strings.HasSuffix(path, "/dataVersion") }

func adminTopicLists(s *session) {
	topic := s.topic("T", 3)
	s.ask("all configurations", wire.ReqGetAllTopicConfig, nil, nil, s.mine("/topicConfigTable"))
	s.askAs(s.ns, "all topics of the name server", wire.ReqGetAllTopics, nil, nil, s.mine("/topicList"))
	s.askAs(s.ns, "topics of the cluster", 224, fields{"cluster": "DefaultCluster"}, nil, s.mine("/topicList"))
	s.askAs(s.ns, "system topics of the name server", 304, nil, nil, brokerTopics, noBrokerAddress)
	s.ask("system topics of the broker", 305, nil, nil, brokerTopics)
	for step, code := range map[string]wire.RequestCode{"unit topics": 311, "unit subscriptions": 312, "unit subscriptions only": 313} {
		s.askAs(s.ns, step, code, nil, nil, s.mine("/topicList"))
	}
	s.do(s.main, wire.ReqDeleteTopicInBroker, fields{"topic": topic}, nil)
	s.askAs(s.ns, "delete at the name server", wire.ReqDeleteTopicInNameServer, fields{"topic": topic}, nil)
	// A broker that registers all its topics at this moment, as it does every 30 s, may have begun with this one.
	s.poll("the route to go", func() bool {
		s.do(s.ns, wire.ReqDeleteTopicInNameServer, fields{"topic": topic}, nil)
		a := s.ns.await(s.ns.start(&wire.Command{Code: int32(wire.ReqGetRoute), Ext: fields{"topic": topic}.list()}))
		return a != nil && a.Code == int32(wire.RespTopicNotExist)
	})
	s.askAs(s.ns, "no route afterwards", wire.ReqGetRoute, fields{"topic": topic}, nil)
	s.askAs(s.ns, "delete at the name server again", wire.ReqDeleteTopicInNameServer, fields{"topic": topic}, nil)
}

// noBrokerAddress leaves out an address that a real name server takes from any of its brokers.
func noBrokerAddress(v *view) { v.drop = func(path string) bool { return path == "/brokerAddr" } }

// brokerTopics keeps the system topics that clients or tools know.
func brokerTopics(v *view) {
	known := []string{wire.DefaultTopic, wire.ScheduleTopic, wire.SelfTestTopic, wire.OffsetMovedTopic, wire.BenchmarkTopic, wire.TraceTopic}
	v.only = func(path string) bool {
		name, ok := strings.CutPrefix(path, "/topicList/")
		if !ok {
			return true
		}
		return slices.Contains(known, name)
	}
}

func adminGroup(s *session) {
	group := s.name("G")
	put := func(step string, body fields) {
		s.ask(step, wire.ReqUpdateSubscriptionGroup, nil, toJSON(s.tb, body))
	}
	get := func(step, group string) { s.ask(step, wire.ReqGetSubscriptionGroupConfig, fields{"group": group}, nil) }
	put("create", groupBody(group))
	get("created", group)
	put("update", groupBody(group, fields{"retryMaxTimes": 3, "consumeMessageOrderly": true, "consumeBroadcastEnable": false, "retryQueueNums": 2}))
	get("updated", group)
	put("only its name", fields{"groupName": s.name("short")})
	get("Java's defaults", s.name("short"))
	put("retry policy", groupBody(s.name("policy"), fields{"groupRetryPolicy": fields{
		"type": "EXPONENTIAL", "exponentialRetryPolicy": fields{"initial": 1000, "max": 10000, "multiplier": 2},
	}}))
	get("with a retry policy", s.name("policy"))
	put("no name", fields{})
	put("dot in the name", groupBody("bs.group"))
	put("name of 256", groupBody(strings.Repeat("g", 256)))
	s.ask("no body", wire.ReqUpdateSubscriptionGroup, nil, nil)
	s.ask("bad body", wire.ReqUpdateSubscriptionGroup, nil, []byte("nonsense"))
	get("made by asking", s.name("absent"))
	s.ask("all groups", wire.ReqGetAllSubscriptionGroups, nil, nil, s.mine("/subscriptionGroupTable", "/forbiddenTable"))
	s.ask("delete", wire.ReqDeleteSubscriptionGroup, fields{"groupName": group, "cleanOffset": true}, nil)
	s.ask("delete what is not there", wire.ReqDeleteSubscriptionGroup, fields{"groupName": s.name("nobody")}, nil)
	s.ask("delete without name", wire.ReqDeleteSubscriptionGroup, nil, nil)
	s.ask("groups by a list", 225, nil, toJSON(s.tb, fields{"groupConfigList": []fields{groupBody(s.name("L"))}}))
	get("made by a list", s.name("L"))
	topic := s.topic("T", 1)
	s.fill(topic, 0, 2)
	kept := s.group("kept")
	at := fields{"consumerGroup": kept, "topic": topic, "queueId": 0, "setZeroIfNotFound": false}
	s.do(s.main, wire.ReqUpdateConsumerOffset, at.with(fields{"commitOffset": 1}), nil)
	s.do(s.main, wire.ReqDeleteSubscriptionGroup, fields{"groupName": kept}, nil)
	s.ask("offset of a deleted group", wire.ReqQueryConsumerOffset, at, nil)
}

func adminProgress(s *session) {
	topic, other, group := s.topic("T", 2), s.topic("other", 1), s.group("G")
	s.fill(topic, 0, 5)
	s.fill(other, 0, 1)
	for _, t := range []string{topic, other} {
		s.do(s.main, wire.ReqUpdateConsumerOffset, fields{"consumerGroup": group, "topic": t, "queueId": 0, "commitOffset": 1}, nil)
	}
	stats := func(step string, f fields) {
		s.ask(step, wire.ReqGetConsumeStats, fields{"consumerGroup": group}.with(f), nil, func(v *view) {
			v.drop = func(path string) bool { return strings.HasSuffix(path, "/consumeTps") }
		})
	}
	stats("a topic", fields{"topic": topic})
	stats("all topics", nil)
	stats("topics of a list", fields{"topicList": topic + ";" + other})
	stats("unknown topic", fields{"topic": s.name("absent")})
	stats("unknown group", fields{"consumerGroup": s.name("absent")})
	stats("unknown group, a topic", fields{"consumerGroup": s.name("absent"), "topic": topic})
	stats("no group", fields{"consumerGroup": nil})
	s.join(s.main, "c1", group, 1, s.subscription(topic, "*"))
	stats("only what its members subscribe to", nil)
	s.ask("time span", wire.ReqQueryConsumeTimeSpan, fields{"topic": topic, "group": group}, nil, func(v *view) { v.drop = isDelay })
	s.ask("time span of an unknown topic", wire.ReqQueryConsumeTimeSpan, fields{"topic": s.name("absent"), "group": group}, nil)
	s.ask("a broker's progress", 317, fields{"isOrder": false}, nil, onlyCode)
	s.ask("statistics data", 315, fields{"statsName": "TOPIC_PUT_NUMS", "statsKey": topic}, nil, func(v *view) {
		v.drop = func(path string) bool { return !strings.Contains(path, "stats") || strings.Count(path, "/") > 1 }
	})
	s.ask("statistics data that is not there", 315, fields{"statsName": "NONE", "statsKey": topic}, nil)
}

// isDelay matches how far behind a group is, which moves with the clock.
func isDelay(path string) bool { return strings.HasSuffix(path, "/delayTime") }

func adminReset(s *session) {
	topic, group := s.topic("T", 2), s.group("G")
	s.fill(topic, 0, 5)
	for queue := range 2 {
		s.do(s.main, wire.ReqUpdateConsumerOffset, fields{"consumerGroup": group, "topic": topic, "queueId": queue, "commitOffset": queue}, nil)
	}
	base := fields{"topic": topic, "group": group, "queueId": -1, "timestamp": -1, "isForce": true}
	reset := func(step string, more fields) { s.ask(step, wire.ReqResetOffset, base.with(more), nil) }
	committed := func(step string) {
		s.ask(step, wire.ReqQueryConsumerOffset, fields{"consumerGroup": group, "topic": topic, "queueId": 0}, nil)
	}
	pull := func(step string, offset int) {
		s.ask(step, wire.ReqPullMessage, pullFields(group, topic, 0, int64(offset)).with(fields{"maxMsgNums": 1}), nil)
	}
	reset("to the end", nil)
	committed("waiting to be picked up")
	s.ask("a commit meanwhile", wire.ReqUpdateConsumerOffset, fields{"consumerGroup": group, "topic": topic, "queueId": 0, "commitOffset": 2}, nil)
	pull("picked up", 0)
	committed("picked up, committed")
	pull("pulled on", 5)
	reset("to the start by time", fields{"timestamp": 0})
	pull("picked up, start", 5)
	reset("one queue by offset", fields{"queueId": 0, "offset": 3})
	pull("picked up, offset", 5)
	reset("offset beyond the end", fields{"queueId": 0, "offset": 100})
	reset("negative offset", fields{"queueId": 0, "offset": -7})
	reset("queue beyond the topic", fields{"queueId": 5, "offset": 1})
	reset("unknown topic", fields{"topic": s.name("absent")})
	reset("unknown group", fields{"group": s.name("absent")})
	reset("no topic", fields{"topic": nil})
	reset("no time", fields{"timestamp": nil})
	reset("not by force", fields{"isForce": false, "timestamp": 0})
}

func adminClone(s *session) {
	topic, from, to := s.topic("T", 2), s.group("from"), s.group("to")
	s.fill(topic, 0, 3)
	s.do(s.main, wire.ReqUpdateConsumerOffset, fields{"consumerGroup": from, "topic": topic, "queueId": 0, "commitOffset": 2}, nil)
	s.ask("clone", wire.ReqCloneGroupOffset, fields{"srcGroup": from, "destGroup": to, "topic": topic, "offline": true}, nil)
	s.ask("cloned", wire.ReqQueryConsumerOffset, fields{"consumerGroup": to, "topic": topic, "queueId": 0}, nil)
	s.ask("clone all topics", wire.ReqCloneGroupOffset, fields{"srcGroup": from, "destGroup": s.group("to2"), "offline": true}, nil)
	s.ask("all cloned", wire.ReqQueryConsumerOffset, fields{"consumerGroup": s.name("to2"), "topic": topic, "queueId": 0}, nil)
	s.ask("unknown topic", wire.ReqCloneGroupOffset, fields{"srcGroup": from, "destGroup": to, "topic": s.name("absent"), "offline": true}, nil)
	s.ask("unknown group", wire.ReqCloneGroupOffset, fields{"srcGroup": s.name("absent"), "destGroup": to, "offline": true}, nil)
	s.ask("no destination", wire.ReqCloneGroupOffset, fields{"srcGroup": from, "offline": true}, nil)
	s.ask("correction", 308, fields{"filterGroups": to, "compareGroup": from, "topic": topic}, nil)
}

func adminBroker(s *session) {
	s.ask("configuration", wire.ReqGetBrokerConfig, nil, nil, func(v *view) {
		v.noFields = []string{"version"}
		v.pairs, v.keys = true, []string{
			"brokerName", "brokerClusterName", "brokerId", "autoCreateTopicEnable", "autoCreateSubscriptionGroup",
			"enablePropertyFilter", "messageDelayLevel", "maxMessageSize", "defaultTopicQueueNums", "brokerPermission", "transactionTimeOut",
		}
	})
	s.ask("runtime information", wire.ReqGetBrokerRuntimeInfo, nil, nil, func(v *view) {
		v.keyNames = []string{
			"bootTimestamp", "brokerVersion", "brokerVersionDesc", "brokerActive", "putTps", "getTransferredTps", "getTotalTps", "getFoundTps",
			"getMissTps", "msgPutTotalTodayNow", "msgPutTotalTodayMorning", "msgPutTotalYesterdayMorning", "msgGetTotalTodayNow", "msgGetTotalTodayMorning",
			"msgGetTotalYesterdayMorning", "runtime", "sendThreadPoolQueueSize", "commitLogMaxOffset", "commitLogMinOffset", "commitLogDiskRatio", "timerOffsetBehind",
			"earliestMessageTimeStamp", "startAcceptSendRequestTimeStamp", "pageCacheLockTimeMills", "putMessageTimesTotal", "putMessageSizeTotal",
			"putMessageEntireTimeMax", "putMessageDistributeTime", "putLatency99", "putLatency999", "getMessageEntireTimeMax",
		}
	})
	s.ask("a setting that is not known", 25, fields{}, []byte("noSuchSetting=1\n"))
	s.ask("no settings", 25, fields{}, nil)
	s.ask("all producers", 328, nil, nil, onlyCode)
	s.ask("all offsets", 43, nil, nil, onlyCode)
	s.ask("delays' offsets", 45, nil, nil, onlyCode)
	s.ask("timer check point", 60, nil, nil, onlyCode)
	s.ask("timer metrics", 61, nil, nil, onlyCode)
	s.ask("replication state", 906, nil, nil, onlyCode)
	s.ask("request modes", 402, nil, nil, func(v *view) { // another scenario sets one
		v.only = func(path string) bool { return !strings.HasPrefix(path, "/messageRequestModeMap/") }
	})
	s.ask("forbidden", 353, fields{"group": s.group("G"), "topic": s.topic("T", 1)}, nil)
}

func adminQueue(s *session) {
	topic, group := s.topic("T", 1), s.group("G")
	s.fill(topic, 0, 3, "TAGS", "red")
	s.join(s.main, "c1", group, 1, s.subscription(topic, "red"))
	f := fields{"topic": topic, "queueId": 0, "index": 1, "count": 2, "consumerGroup": group}
	hide := func(v *view) {
		v.drop = func(path string) bool {
			return strings.HasSuffix(path, "/physicOffset") || strings.HasSuffix(path, "/physicSize")
		}
	}
	s.ask("entries of a queue", 321, f, nil, hide)
	s.ask("without group", 321, f.with(fields{"consumerGroup": nil}), nil, hide)
	s.ask("queue that is not there", 321, f.with(fields{"queueId": 9}), nil, hide)
}
