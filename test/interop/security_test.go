package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/groupview"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/test/interop/cluster"
)

// The names of these tests, and the secret of every account.
const (
	secTopic, secOutput = "SecureOrders", "SecureInvoices"
	secGroup            = "secure-billing"
	secSecret           = "secret-of-everybody"
)

// fortress is a broker with access control. Rights are those of docs/security.md, by resource.
type fortress struct {
	*place
	old   bool // 4.9.7: rights stand in a file
	own   bool // the embedded broker: they do too
	allow func(t *testing.T, account string, rights map[string]string)
}

// least are the least rights for consuming secTopic with outputs and failure records.
func least() map[string]string {
	return map[string]string{
		"Topic:" + secTopic: "Sub,Get", "Group:" + secGroup: "Sub,Get", "Topic:" + secOutput: "Pub", "Topic:STREAMD_FAILURES": "Pub",
	}
}

// without leaves some rights out.
func without(resources ...string) map[string]string {
	rights := least()
	for _, r := range resources {
		delete(rights, r)
	}
	return rights
}

func fortress5(t *testing.T) *fortress {
	t.Helper()
	const auth = "org.apache.rocketmq.auth."
	settings := quickRetries()
	maps.Copy(settings, map[string]string{
		"authenticationEnabled": "true", "authorizationEnabled": "true",
		"authenticationProvider":               auth + "authentication.provider.DefaultAuthenticationProvider",
		"authenticationMetadataProvider":       auth + "authentication.provider.LocalAuthenticationMetadataProvider",
		"authorizationProvider":                auth + "authorization.provider.DefaultAuthorizationProvider",
		"authorizationMetadataProvider":        auth + "authorization.provider.LocalAuthorizationMetadataProvider",
		"initAuthenticationUser":               `{"username":"operator","password":"` + secSecret + `"}`,
		"innerClientAuthenticationCredentials": `{"accessKey":"operator","secretKey":"` + secSecret + `"}`,
	})
	p := newPlace(t, cluster.Options{Broker: settings, ToolsFiles: toolsKey()})
	f := &fortress{place: p}
	made := map[string]bool{}
	f.allow = func(t *testing.T, account string, rights map[string]string) {
		t.Helper()
		if !made[account] {
			made[account] = true
			p.run(t, "createUser", "-c", "DefaultCluster", "-u", account, "-p", secSecret)
		}
		for resource, actions := range rights {
			p.run(t, "createAcl", "-c", "DefaultCluster", "-s", "User:"+account, "-r", resource, "-a", actions, "-d", "Allow")
		}
	}
	return f
}

func toolsKey() map[string]string {
	return map[string]string{"tools.yml": "accessKey: operator\nsecretKey: " + secSecret + "\n"}
}

func fortress4(t *testing.T) *fortress {
	t.Helper()
	settings := quickRetries()
	settings["aclEnable"] = "true"
	all := map[string]map[string]string{}
	file := func() string {
		text := "accounts:\n- {accessKey: operator, secretKey: " + secSecret + ", admin: true}\n"
		for account, rights := range all {
			var topics, groups []string
			for resource, actions := range rights {
				kind, name, _ := strings.Cut(resource, ":")
				right := strings.ReplaceAll(strings.ToUpper(strings.TrimSuffix(actions, ",Get")), ",", "|")
				if kind == "Group" {
					groups = append(groups, "'"+name+"="+right+"'")
				} else {
					topics = append(topics, "'"+name+"="+right+"'")
				}
			}
			text += fmt.Sprintf("- {accessKey: %s, secretKey: %s, admin: false, defaultTopicPerm: DENY, defaultGroupPerm: DENY, topicPerms: [%s], groupPerms: [%s]}\n",
				account, secSecret, strings.Join(topics, ", "), strings.Join(groups, ", "))
		}
		return text
	}
	p := newPlace(t, cluster.Options{
		Version: cluster.Old, Broker: settings, BrokerFiles: map[string]string{"plain_acl.yml": file()}, ToolsFiles: toolsKey(),
	})
	f := &fortress{place: p, old: true}
	f.allow = func(t *testing.T, account string, rights map[string]string) {
		t.Helper()
		if all[account] == nil {
			all[account] = map[string]string{}
		}
		maps.Copy(all[account], rights)
		if err := p.Brokers[0].Rewrite("plain_acl.yml", file()); err != nil {
			t.Fatal(err)
		}
		// The broker reads the file again a moment after it has changed.
		c := f.client(t, account, secSecret)
		until(t, time.Minute, "the broker knows the account "+account, func() (bool, string) {
			err := c.Join(within(t, 20*time.Second), groupOf("asking-"+account, secTopic))
			if err == nil {
				err = c.Leave(within(t, 20*time.Second), "asking-"+account)
			}
			refusal, refused := rocketmq.AccessRefused(err)
			return !refused || refusal.Kind != rocketmq.RefusedUnknownKey, fmt.Sprint(err)
		})
	}
	return f
}

// client signs as an account.
func (f *fortress) client(t *testing.T, account, secret string) *rocketmq.Client {
	t.Helper()
	return newClient(t, f.Addr, func(c *rocketmq.Config) {
		if account != "" {
			c.Account, c.Sign = func() string { return account }, rocketmq.Signer(account, secret)
		}
	})
}

// TestSecurity_leastRights: with the rights of docs/security.md streamd and its commands do all they do; without any one of them
// they say which one is missing and what grants it, lose nothing, and go on when it is granted.
func TestSecurity_leastRights(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *fortress{"5.3.3": fortress5, "4.9.7": fortress4} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t)
			for _, topic := range []string{secTopic, secOutput, "STREAMD_FAILURES"} {
				if err := f.admin.CreateTopic(t.Context(), topic, 2); err != nil {
					t.Fatal(err)
				}
			}
			f.run(t, "updateSubGroup", "-c", "DefaultCluster", "-g", secGroup)
			for account, rights := range map[string]map[string]string{
				"whole-app": least(), "no-topic-app": without("Topic:" + secTopic), "no-group-app": without("Group:" + secGroup),
				"late-app": without("Group:"+secGroup, "Topic:"+secOutput), "no-output-app": without("Topic:"+secOutput, "Topic:STREAMD_FAILURES"),
			} {
				f.allow(t, account, rights)
			}
			f.identities(t)
			f.rights(t)
			f.works(t)
			f.granted(t)
			f.commands(t)
		})
	}
}

// identities: no key, an unknown one and a wrong secret are told apart, and none is tried for ever without a word.
func (f *fortress) identities(t *testing.T) {
	t.Helper()
	for want, c := range map[rocketmq.RefusalKind]*rocketmq.Client{
		rocketmq.RefusedNoKey: f.client(t, "", ""), rocketmq.RefusedUnknownKey: f.client(t, "nobody-app", secSecret), rocketmq.RefusedSignature: f.client(t, "whole-app", "another-secret"),
	} {
		f.refused(t, string(want), c.Join(t.Context(), groupOf(secGroup, secTopic)), rocketmq.Refusal{Kind: want}, "config")
	}
}

// refused checks the kind and the resource of a refusal, and that the error says a word.
func (f *fortress) refused(t *testing.T, what string, err error, want rocketmq.Refusal, says string) {
	t.Helper()
	got, ok := rocketmq.AccessRefused(err)
	if !ok || got.Kind != want.Kind || got.Resource != want.Resource || got.File != (f.old || f.own) || got.Streamd != f.own {
		t.Errorf("%s: %v is read as %+v, want %+v", what, err, got, want)
		return
	}
	if want.Kind != rocketmq.RefusedUnknownKey && !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v does not say %q", what, err, says)
	}
	if strings.Contains(err.Error(), secSecret) {
		t.Errorf("%s: the error has the secret", what)
	}
}

// rights asks for each thing with a right missing.
func (f *fortress) rights(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	lacks := func(resource string) rocketmq.Refusal {
		return rocketmq.Refusal{Kind: rocketmq.RefusedRight, Resource: resource}
	}
	topic, group, output := "Topic:"+secTopic, "Group:"+secGroup, "Topic:"+secOutput
	noTopic, noGroup, noOutput := f.client(t, "no-topic-app", secSecret), f.client(t, "no-group-app", secSecret), f.client(t, "no-output-app", secSecret)
	for _, c := range []*rocketmq.Client{noTopic, noGroup, noOutput} {
		if _, err := c.Queues(ctx, secTopic); err != nil {
			t.Fatal(err)
		}
	}
	queues, err := noTopic.Queues(ctx, secTopic)
	if err != nil {
		t.Fatal(err)
	}
	q := queues[0]
	pull := func(c *rocketmq.Client) error {
		r, err := c.Pull(ctx, &rocketmq.PullRequest{Group: secGroup, Queue: q, MaxMessages: 1, MaxBytes: 1 << 10, Subscription: everything(secTopic)})
		if err == nil {
			r.Release()
		}
		return err
	}
	commit := func(c *rocketmq.Client) error { _, err := c.Commit(ctx, secGroup, q, 0); return err }
	back := func(c *rocketmq.Client) error {
		return c.SendBack(ctx, &rocketmq.SendBackRequest{Group: secGroup, Queue: q, OriginTopic: secTopic, MaxRetries: 1})
	}
	put := func(c *rocketmq.Client, topic string) error {
		_, err := c.Send(ctx, &rocketmq.OutgoingMessage{Topic: topic, Body: []byte("x")})
		return err
	}
	f.refused(t, "joining without the topic", noTopic.Join(ctx, groupOf(secGroup, secTopic)), lacks(topic), "on topic "+secTopic)
	f.refused(t, "joining without the group", noGroup.Join(ctx, groupOf(secGroup, secTopic)), lacks(group), "on group "+secGroup)
	f.refused(t, "pulling without the topic", pull(noTopic), lacks(topic), "grant it")
	f.refused(t, "pulling without the group", pull(noGroup), lacks(group), "grant it")
	f.refused(t, "sending back without the group", back(noGroup), lacks(group), "grant it")
	f.refused(t, "an output", put(noOutput, secOutput), lacks(output), "on topic "+secOutput)
	f.refused(t, "a failure record", put(noOutput, "STREAMD_FAILURES"), lacks("Topic:STREAMD_FAILURES"), "on topic STREAMD_FAILURES")
	f.refused(t, "committing without the group", commit(noGroup), lacks(group), "grant it")
	if f.old {
		return // 4.x lets every account read offsets, as long as it signs
	}
	_, err = noTopic.MaxOffset(ctx, q)
	reading, grant := "Sub,Get", "createAcl"
	if f.own {
		reading, grant = "SUB", "to its groupPerms in the file that acl of the broker names"
	}
	f.refused(t, "asking for the end without the topic", err, lacks(topic), reading)
	_, err = noGroup.Members(ctx, secGroup, secTopic)
	f.refused(t, "listing members without the group", err, lacks(group), grant)
	_, err = noGroup.ConsumeStats(ctx, q.Broker, secGroup, "")
	f.refused(t, "group status without the group", err, lacks(group), grant)
}

func (f *fortress) signed(account, handler string) stream {
	return stream{
		group: secGroup, topic: secTopic, keys: quickLevels + "\noutputs: {topic: " + secOutput + "}", handler: handler,
		broker: fmt.Sprintf("access_key: %s, secret_key: %s", account, secSecret),
	}
}

// works runs the whole path with the least rights: handled, retried, dead-lettered, outputs, failure records, group status.
func (f *fortress) works(t *testing.T) {
	t.Helper()
	operator := f.client(t, "operator", secSecret)
	for _, body := range []string{"ok 1", "fail-1 2", "fail 3", "reject 4"} {
		send(t, operator, &rocketmq.OutgoingMessage{Topic: secTopic, Body: []byte(body)})
	}
	m := f.place.streamd(t, f.signed("whole-app", "emit: "+secOutput)).ready(t)
	m.handled(t, 2, time.Minute)
	readAll(t, operator, "secure-reader", wire.DLQTopic(secGroup), 2)
	readAll(t, operator, "secure-reader", secOutput, 2)
	until(t, time.Minute, "failure records", func() (bool, string) {
		all, err := readFailures(t, operator, secGroup)
		return err == nil && len(all) == 5, fmt.Sprint(len(all), err) // 1 of fail-1, 3 of fail, 1 of reject
	})
	until(t, time.Minute, "group status with the least rights, which lacks nothing", func() (bool, string) {
		g, err := m.groupStatus(t, secGroup)
		return err == nil && len(g.Members) == 1 && g.Members[0].Silent == "" && len(g.Notes) == 0, fmt.Sprint(asJSON(g.Members), g.Notes, err)
	})
	m.stop(t)
}

// groupStatus runs `streamd group status` with the member's own config, and so its keys.
func (m *member) groupStatus(t *testing.T, group string) (g groupview.Group, err error) {
	t.Helper()
	out, err := exec.CommandContext(within(t, patience), built(t, shared.streamd), "group", "status", group, "-c", m.config, "-o", "json").Output()
	if err != nil {
		return g, fmt.Errorf("group status: %w: %s", err, out)
	}
	return g, json.Unmarshal(out, &g)
}

// granted starts streamd without two rights: it runs, says which one it waits for, and does its work as they are granted.
func (f *fortress) granted(t *testing.T) {
	t.Helper()
	operator := f.client(t, "operator", secSecret)
	before := len(readAllNow(t, operator, secOutput))
	m := f.place.streamd(t, f.signed("late-app", "emit: "+secOutput))
	send(t, operator, &rocketmq.OutgoingMessage{Topic: secTopic, Body: []byte("ok late")})
	m.says(t, "access_refused", "on group "+secGroup)
	f.allow(t, "late-app", map[string]string{"Group:" + secGroup: "Sub,Get"})
	m.ready(t)
	m.handled(t, 1, time.Minute)
	m.says(t, "settle_refused", "on topic "+secOutput)
	f.allow(t, "late-app", map[string]string{"Topic:" + secOutput: "Pub"})
	readAll(t, operator, "secure-reader-2", secOutput, before+1)
	until(t, time.Minute, "everything settled", func() (bool, string) {
		g, err := m.groupStatus(t, secGroup)
		return err == nil && g.Lag == 0, fmt.Sprint(g.Lag, err)
	})
	m.stop(t)
}

// readAllNow is what a topic has.
func readAllNow(t *testing.T, c *rocketmq.Client, topic string) (all []stored) {
	t.Helper()
	queues, err := c.Queues(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range queues {
		ms, _, err := read(t.Context(), c, "secure-reader-2", q, 0)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ms...)
	}
	return all
}

// says waits until the member's own status has some texts, and no secret.
func (m *member) says(t *testing.T, texts ...string) {
	t.Helper()
	until(t, time.Minute, "status with "+strings.Join(texts, ", "), func() (bool, string) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		status, err := m.get(ctx, "/api/v1/status")
		if err != nil {
			return false, err.Error()
		}
		if strings.Contains(status, secSecret) {
			t.Error("the status has the secret")
		}
		for _, text := range texts {
			if !strings.Contains(status, text) {
				return false, status
			}
		}
		return true, ""
	})
}
