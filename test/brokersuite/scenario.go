package brokersuite

import (
	"slices"
	"testing"
)

// Scenario is one piece of the suite. Scenarios share nothing: each has topics and groups of its own.
type Scenario struct {
	Name string
	run  func(*session)
}

// Scenarios returns all of them, by name.
func Scenarios() []Scenario {
	all := slices.Concat(produceScenarios(), pullScenarios(), filterScenarios(), groupScenarios(), timeScenarios(), retryScenarios(),
		transactionScenarios(), queryScenarios(), adminScenarios(), callbackScenarios(), nameServerScenarios(), errorScenarios())
	slices.SortFunc(all, func(a, b Scenario) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return all
}

// Record runs a scenario against the RocketMQ that a name server knows and returns what it answered. The server must be set
// as BrokerSettings says and must not have seen the scenario before.
func Record(tb testing.TB, nameServer string, s Scenario) *Transcript {
	tb.Helper()
	r := newSession(tb, nameServer, s.Name)
	s.run(r)
	return r.script
}

// Begin writes the first message of a new broker's log, once before all scenarios: a log offset of 0 looks like none, and whose
// message would have it depends on which scenario is first.
func Begin(tb testing.TB, nameServer string) {
	tb.Helper()
	s := newSession(tb, nameServer, "begin")
	s.fill(s.topic("T", 1), 0, 1)
}

// BrokerSettings are the settings, in the words of broker.conf, with which the real broker was recorded. The embedded one is
// set to the same.
func BrokerSettings() map[string]string {
	return map[string]string{
		"messageDelayLevel":        "1s 1s 1s 1s 1s 1s 1s 2s 3s 4s 5s 6s 7s 8s 9s 10s 11s 12s",
		"transactionTimeOut":       "1500",
		"transactionCheckInterval": "2000",
		"enablePropertyFilter":     "true",
		"recallMessageEnable":      "true",
		// A machine under load must not make the broker refuse what waited in its queues.
		"waitTimeMillsInSendQueue":        "30000",
		"waitTimeMillsInPullQueue":        "30000",
		"waitTimeMillsInTransactionQueue": "30000",
		"waitTimeMillsInAdminBrokerQueue": "60000",
		"osPageCacheBusyTimeOutMills":     "30000",
	}
}
