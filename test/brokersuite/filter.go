package brokersuite

import (
	"fmt"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func filterScenarios() []Scenario {
	return []Scenario{{"filter-tags", filterTags}, {"filter-sql", filterSQL}, {"filter-sql-bad", filterSQLBad}, {"filter-sql-subscribed", filterSQLSubscribed}}
}

// matches writes down which messages of a queue an expression lets pass.
func (s *session) matches(step, group, topic, kind, expression string) {
	s.tb.Helper()
	a := s.main.await(s.main.start(&wire.Command{
		Code: int32(wire.ReqPullMessage), Ext: pullFields(group, topic, 0, 0).with(fields{"subscription": expression, "expressionType": kind}).list(),
	}))
	s.matched(step, a)
}

func (s *session) matched(step string, a *wire.Command) {
	s.tb.Helper()
	var bodies []string
	for rest := a.Body; len(rest) > 0; {
		var m wire.Message
		n, err := m.Decode(rest)
		if err != nil {
			s.tb.Fatal(err)
		}
		bodies, rest = append(bodies, string(m.Body)), rest[n:]
	}
	s.note(step, fmt.Sprintf("%d %s", a.Code, a.ResponseCode()), "messages "+strings.Join(bodies, " "), "next "+a.Ext.Get("nextBeginOffset"))
}

func filterTags(s *session) {
	topic, group := s.topic("T", 1), s.group("G")
	for i, tag := range []string{"red", "green", "", "red || green", "订单", "BB", "Aa", " red"} {
		pairs := []string{"UNIQ_KEY", fmt.Sprint("u", i)}
		if tag != "" {
			pairs = append(pairs, "TAGS", tag)
		}
		s.send(topic, 0, fmt.Sprintf("%d:%s", i, strings.ReplaceAll(tag, " ", "_")), pairs...)
	}
	s.readable(topic, 0, 8)
	for _, e := range []string{"*", "red", "red || green", "red||green", "none", "订单", "BB", "Aa", "", " red ", "|| red", "red | green", "* || red"} {
		s.matches("tags "+fmt.Sprintf("%q", e), group, topic, "TAG", e)
	}
}

// sqlExpressions try RocketMQ's whole grammar with its rules for null and for types.
func sqlExpressions() []string {
	return []string{
		"a > 2", "a >= 2", "a < 2", "a <= 2", "a = 2", "a <> 2", "2 < a", "a > 1.5", "a = 2.0", "f > 1.4", "f = 1.5", "f >= a", "a > b", "a = b",
		"a between 1 and 3", "a not between 1 and 3", "f between 1 and 2", "s between 'a' and 'z'", "s = 'red'", "s <> 'red'", "'red' = s", "s > 'a'",
		"s in ('red', 'blue')", "s not in ('red', 'blue')", "s in ('none')", "a in (1, 2)", "missing is null", "missing is not null", "s is null",
		"s is not null", "missing = 1", "missing <> 1", "missing > 1", "missing in ('x')", "missing not in ('x')", "not missing = 1",
		"missing between 1 and 2", "missing not between 1 and 2", "TRUE", "FALSE", "t = TRUE", "t = FALSE", "t <> TRUE", "t", "t = 'true'", "not (a = 2)", "not t",
		"a > 1 and s = 'red'", "a > 1 or s = 'blue'", "a > 1 and missing = 1", "a > 1 or missing = 1", "a = 1 or a = 2 and s = 'blue'",
		"(a = 1 or a = 2) and s = 'blue'", "s contains 'e'", "s not contains 'e'", "s startswith 're'", "s not startswith 're'", "s endswith 'd'",
		"s not endswith 'd'", "missing contains 'e'", "missing not contains 'e'", "TAGS = 'tag'", "TAGS is null", "KEYS = 'k'", "a > -1", "a = +2", "n < 0",
		"n = -5", "n > -6", "a > 1e0", "f < 1.6e0", "s = 'it''s'", "q = 'it''s'", "A > 2", "a  >\t2", "a > 2 AND s IS NOT NULL", "a > 2 And s is Not null",
		"s = 'RED'", "s > 5", "a > 'x'", "s = 5", "a = '2'", "e = ''", "e is null", "e <> ''", "w = ' x'", "big > 9223372036854775806", "big = 9223372036854775807",
		"1 = 1", "1 > 2", "'a' = 'a'", "TRUE = TRUE", "TRUE and a > 2", "a > 2 and TRUE", "a > 2 or FALSE",
		"$v = 1", "_u = 1", "a.b = 1", "a-b = 1",
	}
}

func filterSQL(s *session) {
	topic, group := s.topic("T", 1), s.group("G")
	messages := [][]string{
		{"a", "1", "b", "1", "s", "red", "t", "true", "f", "1.5"},
		{"a", "2", "b", "3", "s", "blue", "t", "false", "f", "2.5", "TAGS", "tag"},
		{"a", "3", "s", "green", "t", "TRUE", "f", "1.0", "KEYS", "k"},
		{"s", "it's", "q", "it's", "n", "-5", "e", "", "w", " x"},
		{"a", "x", "s", "5", "f", "abc", "t", "yes", "big", "9223372036854775807"},
		{"a", "2.0", "f", "1e1", "n", "-0", "$v", "1", "_u", "1", "a.b", "1", "a-b", "1"},
		{},
	}
	for i, m := range messages {
		s.send(topic, 0, fmt.Sprint("m", i), append([]string{"UNIQ_KEY", fmt.Sprint("u", i)}, m...)...)
	}
	s.readable(topic, 0, int64(len(messages)))
	for _, e := range sqlExpressions() {
		s.ask("client check "+e, wire.ReqCheckClientConfig, nil, s.checkBody(group, topic, e))
		s.matches("sql "+e, group, topic, "SQL92", e)
	}
}

func (s *session) checkBody(group, topic, expression string) []byte {
	return s.bytes(&wire.CheckClientBody{
		ClientID: s.name("c"), Group: group, SubscriptionData: wire.SubscriptionData{
			Topic: topic, ExpressionType: "SQL92", SubString: expression, SubVersion: 1, TagsSet: []string{}, CodeSet: wire.CodeSet{},
		},
	})
}

func filterSQLBad(s *session) {
	topic, group := s.topic("T", 1), s.group("G")
	s.fill(topic, 0, 1, "a", "1")
	for _, e := range []string{
		"a >", "> 1", "a = ", "a in ()", "a in (1, 2)", "a between 1", "a between 3 and 1", "s like 'x'", "a + 1 = 2", "a and", "(a = 1", "a = 1)", "a = 'x",
		"a == 1", "a != 1", "a is", "is null", "not", "a", "1", "'x'", "", " ", "a = 1 b", "s startswith 1", "s contains", "null = null", "a = null",
		"s between 'z' and 'a'", "TRUE > FALSE", "'a' > 'b'", "a = 99999999999999999999", "a > 0x10", "a > 1 and 2",
	} {
		s.ask("client check "+e, wire.ReqCheckClientConfig, nil, s.checkBody(group, topic, e))
	}
	s.matches("pull with what cannot be parsed", group, topic, "SQL92", "a >")
	s.ask("client check of tags", wire.ReqCheckClientConfig, nil, s.bytes(&wire.CheckClientBody{
		ClientID: s.name("c"), Group: group, SubscriptionData: s.subscription(topic, "a || b"),
	}))
	s.ask("client check without body", wire.ReqCheckClientConfig, nil, nil)
}

func filterSQLSubscribed(s *session) {
	topic, group := s.topic("T", 1), s.group("G")
	for i := range 6 {
		s.send(topic, 0, fmt.Sprint("m", i), "UNIQ_KEY", fmt.Sprint("u", i), "a", fmt.Sprint(i))
	}
	s.readable(topic, 0, 6)
	sub := wire.SubscriptionData{Topic: topic, ExpressionType: "SQL92", SubString: "a > 3", TagsSet: []string{}, CodeSet: wire.CodeSet{}}
	s.join(s.main, "c1", group, 7, sub)
	f := pullFields(group, topic, 0, 0).with(fields{"sysFlag": 0, "subscription": nil, "expressionType": "SQL92", "subVersion": 7})
	pull := func(step string, f fields) {
		s.matched(step, s.main.await(s.main.start(&wire.Command{Code: int32(wire.ReqPullMessage), Ext: f.list()})))
	}
	pull("subscribed", f)
	pull("subscribed, expression type left out", f.with(fields{"expressionType": nil}))
	pull("newer", f.with(fields{"subVersion": 8}))
	sub.SubString = "a < 2"
	s.join(s.main, "c1", group, 8, sub)
	pull("changed", f.with(fields{"subVersion": 8}))
	retry := s.subscription("%RETRY%"+group, "*")
	s.join(s.main, "c1", group, 9, sub, retry)
	pull("with the retry topic subscribed", f.with(fields{"subVersion": 9}))
}
