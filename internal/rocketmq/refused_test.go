package rocketmq

import (
	"fmt"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// TestRefusal reads what RocketMQ says, word for word, and what an operator is told.
func TestRefusal(t *testing.T) {
	t.Parallel()
	const stack = ", org.apache.rocketmq.acl.plain.PlainPermissionManager.validate(PlainPermissionManager.java:600)"
	const own = " This broker has its accounts in the file that its acl names."
	const four = "org.apache.rocketmq.acl.common.AclException: "
	for name, c := range map[string]struct {
		request wire.RequestCode
		code    wire.ResponseCode
		remark  string
		want    Refusal
		says    []string
	}{
		"5 no key":    {wire.ReqHeartbeat, wire.RespNoPermission, "username cannot be null.", Refusal{Kind: RefusedNoKey, Account: "app"}, []string{"access_key and secret_key"}},
		"5 unknown":   {wire.ReqHeartbeat, wire.RespNoPermission, "User:nobody is not found.", Refusal{Kind: RefusedUnknownKey, Account: "nobody"}, []string{`"nobody"`, "mqadmin createUser", "-u nobody"}},
		"5 disabled":  {wire.ReqHeartbeat, wire.RespNoPermission, "User:app is disabled.", Refusal{Kind: RefusedDisabled, Account: "app"}, []string{"updateUser", "-u app"}},
		"5 signature": {wire.ReqHeartbeat, wire.RespNoPermission, "check signature failed.", Refusal{Kind: RefusedSignature, Account: "app"}, []string{`"app"`, "another secret", "secret_key"}},
		"5 topic": {
			wire.ReqPullMessage, wire.RespNoPermission, "User:app has no permission to access Topic:Orders from 10.1.2.3, no matched policies.",
			Refusal{Kind: RefusedRight, Account: "app", Resource: "Topic:Orders", Rights: "Sub,Get"},
			[]string{`"app" lacks Sub,Get on topic Orders`, "mqadmin createAcl", "-s User:app -r Topic:Orders -a Sub,Get -d Allow"},
		},
		"5 output": {
			wire.ReqSendMessageV2, wire.RespNoPermission, "User:app has no permission to access Topic:Invoices from 10.1.2.3, the decision is deny.",
			Refusal{Kind: RefusedRight, Account: "app", Resource: "Topic:Invoices", Rights: "Pub"},
			[]string{"-r Topic:Invoices -a Pub "},
		},
		"5 group": {
			wire.ReqSendBack, wire.RespNoPermission, "User:app has no permission to access Group:billing from 10.1.2.3, no matched policies.",
			Refusal{Kind: RefusedRight, Account: "app", Resource: "Group:billing", Rights: "Sub,Get"},
			[]string{"on group billing"},
		},
		"5 tools": {
			wire.ReqPullMessage, wire.RespNoPermission, "User:app has no permission to access Group:TOOLS_CONSUMER from 10.1.2.3, no matched policies.",
			Refusal{Kind: RefusedRight, Account: "app", Resource: "Group:TOOLS_CONSUMER", Rights: "Sub"},
			[]string{"-r Group:TOOLS_CONSUMER -a Sub -d Allow"},
		},
		"5 records": {
			wire.ReqSearchOffsetByTimestamp, wire.RespNoPermission, "User:app has no permission to access Topic:STREAMD_FAILURES from 10.1.2.3, the decision is deny.",
			Refusal{Kind: RefusedRight, Account: "app", Resource: "Topic:STREAMD_FAILURES", Rights: "Sub,Get"},
			[]string{"-r Topic:STREAMD_FAILURES -a Sub,Get -d Allow", "-a Pub,Sub,Get if it has other rights"}, // a member's Pub must not go
		},
		"5 cluster": {
			wire.ReqUpdateAndCreateTopic, wire.RespNoPermission, "User:app has no permission to access Cluster:DefaultCluster from 10.1.2.3, no matched policies.",
			Refusal{Kind: RefusedRight, Account: "app", Resource: "Cluster"},
			[]string{"administrator"},
		},
		"streamd unknown": {
			wire.ReqHeartbeat, wire.RespNoPermission, "User:nobody is not found." + own,
			Refusal{Kind: RefusedUnknownKey, Account: "nobody", File: true, Streamd: true},
			[]string{`"nobody"; correct access_key, or add an account to the file that acl of the broker names, which it reads again on SIGHUP`},
		},
		"streamd topic": {
			wire.ReqPullMessage, wire.RespNoPermission, "User:app has no permission to access Topic:Orders from 10.1.2.3, no matched policies." + own,
			Refusal{Kind: RefusedRight, Account: "app", Resource: "Topic:Orders", Rights: "Sub,Get", File: true, Streamd: true},
			[]string{`"app" lacks SUB on topic Orders; grant it: add Orders=SUB to its topicPerms in the file that acl of the broker names`},
		},
		"streamd group": {
			wire.ReqSendBack, wire.RespNoPermission, "User:app has no permission to access Group:billing from 10.1.2.3, the decision is deny." + own,
			Refusal{Kind: RefusedRight, Account: "app", Resource: "Group:billing", Rights: "Sub,Get", File: true, Streamd: true},
			[]string{`add billing=SUB to its groupPerms in the file that acl of the broker names`},
		},
		"streamd cluster": {
			wire.ReqUpdateAndCreateTopic, wire.RespNoPermission, "User:app has no permission to access Cluster:* from 10.1.2.3, no matched policies." + own,
			Refusal{Kind: RefusedRight, Account: "app", Resource: "Cluster", File: true, Streamd: true},
			[]string{"administrator"},
		},
		"streamd no key":    {wire.ReqHeartbeat, wire.RespNoPermission, "username cannot be null." + own, Refusal{Kind: RefusedNoKey, Account: "app", File: true, Streamd: true}, []string{"access_key and secret_key"}},
		"streamd signature": {wire.ReqHeartbeat, wire.RespNoPermission, "check signature failed." + own, Refusal{Kind: RefusedSignature, Account: "app", File: true, Streamd: true}, []string{"another secret"}},
		"4 no key":          {wire.ReqHeartbeat, wire.RespSystemError, four + "No accessKey is configured" + stack, Refusal{Kind: RefusedNoKey, Account: "app", File: true}, []string{"access_key and secret_key"}},
		"4 unknown":         {wire.ReqHeartbeat, wire.RespSystemError, four + "No acl config for nobody" + stack, Refusal{Kind: RefusedUnknownKey, Account: "nobody", File: true}, []string{`"nobody"`, "plain_acl.yml"}},
		"4 signature":       {wire.ReqHeartbeat, wire.RespSystemError, four + "Check signature failed for accessKey=app" + stack, Refusal{Kind: RefusedSignature, Account: "app", File: true}, []string{"another secret"}},
		"4 topic": {
			wire.ReqPullMessage, wire.RespSystemError, four + "No default permission for topic:Orders" + stack,
			Refusal{Kind: RefusedRight, Account: "app", Resource: "Topic:Orders", Rights: "Sub,Get", File: true},
			[]string{"lacks SUB on topic Orders", "Orders=SUB to its topicPerms"},
		},
		"4 output": {
			wire.ReqSendMessageV2, wire.RespSystemError, four + "No default permission for topic:Invoices" + stack,
			Refusal{Kind: RefusedRight, Account: "app", Resource: "Topic:Invoices", Rights: "Pub", File: true},
			[]string{"Invoices=PUB to its topicPerms", "Invoices=PUB|SUB in place of"},
		},
		"4 dead letters": {
			wire.ReqPullMessage, wire.RespSystemError, four + "No default permission for topic:%DLQ%billing" + stack,
			Refusal{Kind: RefusedRight, Account: "app", Resource: "Topic:%DLQ%billing", Rights: "Sub,Get", File: true},
			[]string{"add '%DLQ%billing=SUB' to its topicPerms"},
		},
		"4 group": {
			wire.ReqHeartbeat, wire.RespSystemError, four + "No default permission for group:billing" + stack,
			Refusal{Kind: RefusedRight, Account: "app", Resource: "Group:billing", Rights: "Sub,Get", File: true},
			[]string{"billing=SUB to its groupPerms"},
		},
		"4 admin": {
			wire.ReqUpdateAndCreateTopic, wire.RespSystemError, four + "Need admin permission for request code=17, but accessKey=app is not" + stack,
			Refusal{Kind: RefusedRight, Account: "app", Resource: "Cluster", File: true},
			[]string{"administrator"},
		},
		"4 anything else": {wire.ReqHeartbeat, wire.RespSystemError, four + "Parse the secret is wrong" + stack, Refusal{Kind: RefusedOther, Account: "app", File: true}, []string{"refuses"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := fmt.Errorf("asking: %w", &ResponseError{Request: c.request, Code: c.code, Remark: c.remark, Broker: "broker-a", Account: "app"})
			got, ok := AccessRefused(err)
			if !ok || got != c.want {
				t.Errorf("AccessRefused = %+v, %t, want %+v", got, ok, c.want)
			}
			if strings.Contains(err.Error(), "mqadmin") && got.File {
				t.Errorf("%v: mqadmin changes no file", err)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%v does not say %q", err, s)
				}
			}
			if !IsFatal(err) || IsRetriable(err) || IsRouteStale(err) {
				t.Errorf("fatal %t, retriable %t, stale %t", IsFatal(err), IsRetriable(err), IsRouteStale(err))
			}
		})
	}
}

// TestRefusal_others: the same codes say other things too.
func TestRefusal_others(t *testing.T) {
	t.Parallel()
	for remark, code := range map[string]wire.ResponseCode{
		"the topic[Orders] sending message is forbidden":        wire.RespNoPermission,
		"the broker[10.1.2.3] sending message is forbidden":     wire.RespNoPermission,
		"subscription group no permission, billing":             wire.RespNoPermission,
		"java.lang.NullPointerException, org.apache.rocketmq.X": wire.RespSystemError,
	} {
		err := &ResponseError{Request: wire.ReqPullMessage, Code: code, Remark: remark}
		if r, refused := AccessRefused(err); refused {
			t.Errorf("%q is read as %+v", remark, r)
		}
	}
	if _, refused := AccessRefused(ErrNoBroker); refused {
		t.Error("no broker is no refusal")
	}
	if !IsRetriable(&ResponseError{Code: wire.RespSystemError, Remark: "java.lang.NullPointerException"}) {
		t.Error("any other exception may go by")
	}
}
