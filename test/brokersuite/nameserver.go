package brokersuite

import (
	"strings"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func nameServerScenarios() []Scenario {
	return []Scenario{{"names-route", route}, {"names-kv", keyValues}, {"names-cluster", clusterInfo}, {"names-foreign", foreignBroker}}
}

func route(s *session) {
	topic := s.topic("T", 3)
	ask := func(step string, f fields) { s.askAs(s.ns, step, wire.ReqGetRoute, f, nil) }
	ask("known", fields{"topic": topic})
	ask("known, standard JSON wanted", fields{"topic": topic, "acceptStandardJsonOnly": true})
	ask("unknown", fields{"topic": s.name("absent")})
	ask("no topic", nil)
	ask("template", fields{"topic": wire.DefaultTopic})
	ask("empty", fields{"topic": ""})
	uneven := s.topic("uneven", 1, fields{"readQueueNums": 4, "writeQueueNums": 2, "perm": 4})
	ask("more to read than to write", fields{"topic": uneven})
}

func keyValues(s *session) {
	space := s.name("space")
	kv := func(step string, code wire.RequestCode, f fields) {
		s.askAs(s.ns, step, code, fields{"namespace": space, "key": "k"}.with(f), nil)
	}
	kv("absent", wire.ReqGetKVConfig, nil)
	kv("put", wire.ReqPutKVConfig, fields{"value": "v"})
	kv("get", wire.ReqGetKVConfig, nil)
	kv("put again", wire.ReqPutKVConfig, fields{"value": "w"})
	kv("changed", wire.ReqGetKVConfig, nil)
	kv("list", wire.ReqGetKVListByNamespace, nil)
	kv("list of an unknown space", wire.ReqGetKVListByNamespace, fields{"namespace": s.name("absent")})
	kv("put without value", wire.ReqPutKVConfig, nil)
	kv("delete", wire.ReqDeleteKVConfig, nil)
	kv("deleted", wire.ReqGetKVConfig, nil)
	kv("delete again", wire.ReqDeleteKVConfig, nil)
	kv("without key", wire.ReqGetKVConfig, fields{"key": nil})
}

func clusterInfo(s *session) {
	s.askAs(s.ns, "cluster", wire.ReqGetClusterInfo, nil, nil, func(v *view) {
		v.only = func(path string) bool { return !strings.Contains(path, "/bs-") } // what another scenario registers
	})
	s.askAs(s.ns, "name server's settings", 319, nil, nil, func(v *view) {
		v.pairs, v.keys = true, []string{"orderMessageEnable", "returnOrderTopicConfigToBroker", "enableTopicList", "enableAllTopicList"}
	})
	s.askAs(s.ns, "settings that are not known", 318, nil, []byte("noSuchSetting=1\n"))
	s.askAs(s.ns, "members of a broker", 901, fields{"clusterName": "DefaultCluster", "brokerName": "broker-a"}, nil)
	s.askAs(s.ns, "members of a broker that is not there", 901, fields{"clusterName": "DefaultCluster", "brokerName": "absent"}, nil)
	s.askAs(s.ns, "no longer to be written to, broker not there", 205, fields{"brokerName": s.name("absent")}, nil)
	s.askAs(s.ns, "to be written to again, broker not there", 327, fields{"brokerName": s.name("absent")}, nil)
}

// foreignBroker registers another broker at the name server, as a RocketMQ broker does.
func foreignBroker(s *session) {
	name, p := s.name("broker"), s.dial(s.nameServer)
	f := fields{
		"brokerName": name, "brokerAddr": "127.0.0.1:1", "clusterName": s.name("cluster"), "haServerAddr": "127.0.0.1:2", "brokerId": 0, "compressed": false,
		"bodyCrc32": 0,
	}
	config := func(topic string) fields {
		return fields{"attributes": fields{}, "order": false, "perm": 6, "readQueueNums": 2, "topicFilterType": "SINGLE_TAG", "topicName": topic, "topicSysFlag": 0, "writeQueueNums": 2}
	}
	body := func(counter int, topics ...string) []byte {
		table := fields{}
		for _, t := range topics {
			table[t] = config(t)
		}
		return toJSON(s.tb, fields{"filterServerList": []string{}, "topicConfigSerializeWrapper": fields{
			"dataVersion": fields{"counter": counter, "stateVersion": 0, "timestamp": 1700000000000 + counter}, "topicConfigTable": table,
		}})
	}
	one, two := s.name("one"), s.name("two")
	s.askAs(p, "register", wire.ReqRegisterBroker, f, body(1, one, two))
	s.askAs(s.ns, "route", wire.ReqGetRoute, fields{"topic": one}, nil)
	s.askAs(p, "register again", wire.ReqRegisterBroker, f, body(1, one, two))
	version := toJSON(s.tb, fields{"counter": 1, "stateVersion": 0, "timestamp": 1700000000001})
	s.askAs(p, "data version, the same", wire.ReqQueryDataVersion, f, version)
	s.askAs(p, "data version, another", wire.ReqQueryDataVersion, f, toJSON(s.tb, fields{"counter": 9, "stateVersion": 0, "timestamp": 1700000000009}))
	s.askAs(s.ns, "in the cluster", wire.ReqGetClusterInfo, nil, nil, func(v *view) {
		v.only = func(path string) bool {
			for _, l := range []string{"/brokerAddrTable/", "/clusterAddrTable/"} {
				if rest, ok := strings.CutPrefix(path, l); ok && !strings.Contains(rest, "/") {
					return strings.HasPrefix(rest, "bs-names-foreign")
				}
			}
			return true
		}
	})
	s.askAs(p, "wrong checksum", wire.ReqRegisterBroker, f.with(fields{"bodyCrc32": 77}), body(2, one, two))
	s.askAs(p, "without name", wire.ReqRegisterBroker, f.with(fields{"brokerName": nil}), body(2, one, two))
	s.askAs(p, "unregister", wire.ReqUnregisterBroker, f, nil)
	s.poll("the route to go", func() bool {
		a := s.ns.await(s.ns.start(&wire.Command{Code: int32(wire.ReqGetRoute), Ext: fields{"topic": one}.list()}))
		return a != nil && a.Code == int32(wire.RespTopicNotExist)
	})
	s.askAs(p, "register once more", wire.ReqRegisterBroker, f, body(3, one, two))
	p.close()
	s.poll("the route to go with the connection", func() bool {
		a := s.ns.await(s.ns.start(&wire.Command{Code: int32(wire.ReqGetRoute), Ext: fields{"topic": one}.list()}))
		return a != nil && a.Code == int32(wire.RespTopicNotExist)
	})
}
