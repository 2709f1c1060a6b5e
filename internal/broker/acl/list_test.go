package acl_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

const rules = `
globalWhiteRemoteAddresses: ["10.9.*.*", "2001:db8::/32"]
accounts:
  - accessKey: RocketMQ
    secretKey: "12345678"
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms: [Orders=PUB|SUB, Invoices=PUB, Audit=SUB, Secret=DENY]
    groupPerms: [billing=SUB, closed=DENY, sender=PUB]
  - accessKey: operator
    secretKey: "87654321"
    admin: true
  - accessKey: neighbor
    secretKey: "11112222"
    whiteRemoteAddress: 192.168.7.{3,4}
`

const (
	noMatch = "User:RocketMQ has no permission to access %s from 127.0.0.1, no matched policies."
	denied  = "User:RocketMQ has no permission to access %s from 127.0.0.1, the decision is deny."
)

// TestPermissions is the table of who may do what, with the words of 5.3.3.
func TestPermissions(t *testing.T) {
	list := parse(t, rules)
	for _, c := range []struct {
		code wire.RequestCode
		ext  string // key=value, blank separated
		body string
		want string
	}{
		{code: wire.ReqSendMessage, ext: "topic=Orders"},
		{code: wire.ReqSendMessageV2, ext: "b=Invoices"},
		{code: wire.ReqSendMessageV2, ext: "b=Audit", want: fmt.Sprintf(noMatch, "Topic:Audit")},
		{code: wire.ReqSendBatchMessage, ext: "b=Other", want: fmt.Sprintf(noMatch, "Topic:Other")},
		{code: wire.ReqSendMessageV2, ext: "b=Secret", want: fmt.Sprintf(denied, "Topic:Secret")},
		{code: wire.ReqSendMessageV2, ext: "b=%RETRY%billing"},
		{code: wire.ReqSendMessageV2, ext: "b=%RETRY%closed", want: fmt.Sprintf(denied, "Group:closed")},
		{code: wire.ReqEndTransaction, ext: "topic=Other", want: fmt.Sprintf(noMatch, "Topic:Other")},
		{code: wire.ReqEndTransaction},
		{code: wire.ReqPullMessage, ext: "consumerGroup=billing topic=Orders"},
		{code: wire.ReqPullMessage, ext: "consumerGroup=any topic=Audit"},
		{code: wire.ReqPullMessage, ext: "consumerGroup=billing topic=%RETRY%billing"},
		{code: wire.ReqPullMessage, ext: "consumerGroup=closed topic=Orders", want: fmt.Sprintf(denied, "Group:closed")},
		{code: wire.ReqPullMessage, ext: "consumerGroup=sender topic=Orders", want: fmt.Sprintf(noMatch, "Group:sender")},
		{code: wire.ReqLitePullMessage, ext: "consumerGroup=billing topic=Invoices", want: fmt.Sprintf(noMatch, "Topic:Invoices")},
		{code: wire.ReqUpdateConsumerOffset, ext: "consumerGroup=billing topic=Secret", want: fmt.Sprintf(denied, "Topic:Secret")},
		{code: wire.ReqSendBack, ext: "group=closed", want: fmt.Sprintf(denied, "Group:closed")},
		{code: wire.ReqGetConsumerList, ext: "consumerGroup=billing"},
		{code: wire.ReqUnregisterClient},
		{code: wire.ReqGetMaxOffset, ext: "topic=Invoices"},
		{code: wire.ReqGetMaxOffset, ext: "topic=Other", want: fmt.Sprintf(noMatch, "Topic:Other")},
		{code: wire.ReqQueryMessage, ext: "topic=Invoices", want: fmt.Sprintf(noMatch, "Topic:Invoices")},
		{code: wire.ReqHeartbeat, body: `{"clientID":"c","consumerDataSet":[{"groupName":"billing","subscriptionDataSet":[{"topic":"Orders"},{"topic":"%RETRY%billing"}]}]}`},
		{code: wire.ReqHeartbeat, body: `{"clientID":"c","consumerDataSet":[{"groupName":"billing","subscriptionDataSet":[{"topic":"Other"}]}]}`, want: fmt.Sprintf(noMatch, "Topic:Other")},
		{code: wire.ReqHeartbeat, body: `{"clientID":"c","consumerDataSet":[{"groupName":"closed"}]}`, want: fmt.Sprintf(denied, "Group:closed")},
		{code: wire.ReqHeartbeat, body: `no JSON`}, // the broker tells that
		{code: wire.ReqLockQueues, body: `{"consumerGroup":"billing","mqSet":[{"topic":"Invoices","brokerName":"b","queueId":0}]}`, want: fmt.Sprintf(noMatch, "Topic:Invoices")},
		{code: wire.ReqCheckClientConfig, body: `{"group":"closed","subscriptionData":{"topic":"Orders"}}`, want: fmt.Sprintf(denied, "Group:closed")},
		{code: wire.ReqQueryAssignment, body: `{"topic":"Audit","consumerGroup":"billing"}`},
		{code: wire.ReqQueryAssignment, body: `{"topic":"Other","consumerGroup":"billing"}`, want: fmt.Sprintf(noMatch, "Topic:Other")},
		{code: wire.ReqUpdateAndCreateTopic, ext: "topic=Orders", want: fmt.Sprintf(noMatch, "Cluster:*")},
		{code: wire.ReqResetOffset, ext: "topic=Orders group=billing", want: fmt.Sprintf(noMatch, "Cluster:*")},
		{code: wire.ReqRegisterBroker, want: fmt.Sprintf(noMatch, "Cluster:*")},
		{code: wire.ReqPutKVConfig, want: fmt.Sprintf(noMatch, "Cluster:*")},
		{code: 12345, want: fmt.Sprintf(noMatch, "Cluster:*")},
	} {
		cmd := request(c.code, c.ext, c.body)
		sign(cmd, "RocketMQ", "12345678")
		got := ""
		if refused := list.Check(loopback, cmd); refused != nil {
			got = refused.Error()
		}
		if got != c.want {
			t.Errorf("%s %s%s: %q, want %q", c.code, c.ext, c.body, got, c.want)
		}
		sign(cmd, "operator", "87654321")
		if refused := list.Check(loopback, cmd); refused != nil {
			t.Errorf("%s %s%s of an administrator: %v", c.code, c.ext, c.body, refused)
		}
	}
}

func TestWhoIsLetIn(t *testing.T) {
	list := parse(t, rules)
	good := request(wire.ReqSendMessage, "topic=Orders", "body")
	sign(good, "RocketMQ", "12345678")
	moved := request(wire.ReqSendMessage, "topic=Order", "sbody") // bytes moved from a field into the body sign alike; the topic does not
	sign(moved, "RocketMQ", "12345678")
	token := request(wire.ReqSendMessage, "topic=Orders SecurityToken=tok", "body")
	sign(token, "RocketMQ", "12345678")
	unsigned := request(wire.ReqSendMessage, "topic=Orders", "body")
	stranger := request(wire.ReqSendMessage, "topic=Orders", "")
	sign(stranger, "stranger", "12345678")
	forged := request(wire.ReqSendMessage, "topic=Orders", "body")
	sign(forged, "RocketMQ", "12345678")
	forged.Body = []byte("Body")
	garbled := request(wire.ReqSendMessage, "topic=Orders AccessKey=RocketMQ Signature=%%%", "")
	missing := request(wire.ReqSendMessage, "topic=Orders AccessKey=RocketMQ", "")
	neighbor := request(wire.ReqUpdateAndCreateTopic, "topic=Orders AccessKey=neighbor", "")
	for name, c := range map[string]struct {
		cmd  *wire.Command
		from string
		want string
	}{
		"good":            {good, "127.0.0.1", ""},
		"with a token":    {token, "127.0.0.1", ""},
		"moved":           {moved, "127.0.0.1", fmt.Sprintf(noMatch, "Topic:Order")},
		"unsigned":        {unsigned, "127.0.0.1", "username cannot be null."},
		"stranger":        {stranger, "127.0.0.1", "User:stranger is not found."},
		"forged":          {forged, "127.0.0.1", "check signature failed."},
		"garbled":         {garbled, "127.0.0.1", "check signature failed."},
		"without":         {missing, "127.0.0.1", "check signature failed."},
		"white":           {unsigned, "10.9.1.2", ""},
		"white, IPv6":     {unsigned, "2001:db8::7", ""},
		"not white":       {unsigned, "10.8.1.2", "username cannot be null."},
		"neighbor":        {neighbor, "192.168.7.4", ""},
		"neighbor abroad": {neighbor, "192.168.7.5", "check signature failed."},
		"name server":     {request(wire.ReqGetRoute, "topic=Orders", ""), "127.0.0.1", ""},
	} {
		got := ""
		if refused := list.Check(netip.MustParseAddr(c.from), c.cmd); refused != nil {
			got = refused.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestUniqueQuery: 5.3.3 leaves the field out of what is signed up to version 399, and takes it in above.
func TestUniqueQuery(t *testing.T) {
	list := parse(t, rules)
	for version, signedWithout := range map[int32]bool{399: true, 400: false} {
		cmd := request(wire.ReqQueryMessage, "topic=Audit", "")
		cmd.Version = version
		if !signedWithout {
			cmd.Ext.Set("_UNIQUE_KEY_QUERY", "true")
		}
		sign(cmd, "RocketMQ", "12345678")
		cmd.Ext.Set("_UNIQUE_KEY_QUERY", "true")
		if refused := list.Check(loopback, cmd); refused != nil {
			t.Errorf("version %d: %v", version, refused)
		}
	}
}

func request(code wire.RequestCode, ext, body string) *wire.Command {
	cmd := &wire.Command{Code: int32(code), Body: []byte(body)}
	for f := range strings.FieldsSeq(ext) {
		key, value, _ := strings.Cut(f, "=")
		cmd.Ext.Set(key, value)
	}
	return cmd
}

// sign does what a client does, written from the description alone.
func sign(cmd *wire.Command, key, secret string) {
	cmd.Ext.Delete("Signature")
	cmd.Ext.Set("AccessKey", key)
	fields := cmd.Ext.Map()
	content := ""
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		content += fields[k]
	}
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write([]byte(content + string(cmd.Body)))
	cmd.Ext.Set("Signature", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}
