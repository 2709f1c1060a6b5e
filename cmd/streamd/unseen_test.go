package main

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/brokertest"
	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Who may not ask the members of a group does not learn what they hold: that is said, and not that nothing is held.
func TestGroupRelease_unseen(t *testing.T) {
	const refusal = "User:app has no permission to access Group:billing from 127.0.0.1, no matched policies."
	for name, refused := range map[string]wire.RequestCode{"": 0, "the queues of member one@1#1 could not be seen": wire.ReqGetConsumerRunningInfo} {
		b := brokertest.StartGuarded(t, func(_ netip.Addr, cmd *wire.Command) (string, bool) { return refusal, cmd.RequestCode() != refused })
		b.CreateTopic("Orders", 2)
		brokertest.Join(t, b, "one@1#1", rocketmq.GroupSpec{
			Name: "billing", FromWhere: rocketmq.FromLast,
			Subscriptions: func() []rocketmq.Subscription {
				return []rocketmq.Subscription{{Topic: "Orders", Expression: "*", Type: rocketmq.FilterTag, Version: 1}}
			},
			RunningInfo: func(bool) *wire.ConsumerRunningInfo { return &wire.ConsumerRunningInfo{} },
		})
		for _, more := range [][]string{nil, {"-o", "json"}} {
			var out, talk strings.Builder
			code := run(t.Context(), append([]string{"group", "release", "billing", "--at", "min", "-n", b.Address()}, more...), strings.NewReader(""), &out, &talk)
			claims := strings.Contains(out.String(), "no queue of billing is held")
			if want := name == "" && more == nil; claims != want {
				t.Errorf("%q %v: it says\n%s", name, more, out.String())
			}
			if more != nil && strings.TrimSpace(out.String()) != "[]" {
				t.Errorf("%q: JSON is %s", name, out.String())
			}
			if want := map[bool]int{true: exitcode.OK, false: exitcode.Runtime}[name == ""]; code != want || !strings.Contains(talk.String(), name) {
				t.Errorf("%q %v: exit code %d, want %d:\n%s", name, more, code, want, talk.String())
			}
		}
	}
}
