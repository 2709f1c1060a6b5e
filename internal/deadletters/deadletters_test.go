package deadletters_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/brokertest"
	"github.com/streamd/streamd/internal/deadletters"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const group = "billing"

// world is a broker with a group and a client.
type world struct {
	broker *broker.Broker
	client *rocketmq.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newGuardedWorld(t, nil)
}

// newGuardedWorld has a broker that refuses some requests, with the words of access control.
func newGuardedWorld(t *testing.T, access func(from netip.Addr, cmd *wire.Command) (remark string, allowed bool)) *world {
	t.Helper()
	b := brokertest.StartGuarded(t, access)
	b.CreateTopic("Orders", 1)
	b.PutGroup(b.NewGroup(group))
	return &world{b, brokertest.Client(t, b, "")}
}

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// die makes messages and has the broker put each into the dead letters, as a member does.
func (w *world) die(t *testing.T, c *rocketmq.Client, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		stored, err := c.Send(t.Context(), &rocketmq.OutgoingMessage{
			Topic: "Orders", Keys: []string{"K-" + body[:1]}, Tag: "created", Body: []byte(body), Properties: map[string]string{"traceparent": traceparent, "color": "red"},
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Pull(t.Context(), &rocketmq.PullRequest{
			Group: group, Queue: stored.Queue, Offset: stored.Offset, MaxMessages: 1,
			Subscription: rocketmq.Subscription{Topic: "Orders", Expression: "*", Type: rocketmq.FilterTag},
		})
		if err != nil || got.Status != rocketmq.PullFound {
			t.Fatalf("pull: %+v, %v", got, err)
		}
		var m wire.Message
		if _, err := m.Decode(got.Body); err != nil {
			t.Fatal(err)
		}
		err = c.SendBack(t.Context(), &rocketmq.SendBackRequest{
			Group: group, Queue: stored.Queue, LogOffset: m.LogOffset, MessageID: m.ID(), OriginTopic: "Orders", DelayLevel: -1, MaxRetries: 16, StoreHost: m.StoreHost.String(),
		})
		got.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (w *world) open(t *testing.T) *deadletters.Box {
	t.Helper()
	box, err := deadletters.Open(t.Context(), w.client, group)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func newest(t *testing.T, box *deadletters.Box, f deadletters.Filter, limit int) []*deadletters.Letter {
	t.Helper()
	all, err := box.Newest(t.Context(), f, limit)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestList(t *testing.T) {
	w := newWorld(t)
	if _, err := deadletters.Open(t.Context(), w.client, group); !errors.Is(err, deadletters.ErrNone) {
		t.Errorf("before anything died: %v", err)
	}
	w.die(t, w.client, "a1", "b1", "a2")
	box := w.open(t)
	all := newest(t, box, deadletters.Filter{}, 0)
	if len(all) != 3 || box.Count() != 3 || all[0].Offset != 2 || all[2].Offset != 0 {
		t.Fatalf("%d letters of %d: %+v", len(all), box.Count(), all)
	}
	l := all[2]
	if l.OriginTopic != "Orders" || l.Attempts != 1 || l.Keys[0] != "K-a" || l.Tag != "created" || l.TraceID != "4bf92f3577b34da6a3ce929d0e0e4736" || l.OriginID == l.ID || l.UniqueKey == "" {
		t.Errorf("letter %+v", l)
	}
	for name, c := range map[string]struct {
		filter deadletters.Filter
		limit  int
		want   int
	}{
		"limit":        {limit: 2, want: 2},
		"key":          {filter: deadletters.Filter{Keys: []string{"K-a"}}, want: 2},
		"own id":       {filter: deadletters.Filter{IDs: []string{l.ID}}, want: 1},
		"first id":     {filter: deadletters.Filter{IDs: []string{l.OriginID}}, want: 1},
		"unique key":   {filter: deadletters.Filter{IDs: []string{l.UniqueKey}}, want: 1},
		"topic":        {filter: deadletters.Filter{Topic: "Payments"}},
		"from":         {filter: deadletters.Filter{From: time.Now().Add(-time.Hour)}, want: 3},
		"from later":   {filter: deadletters.Filter{From: time.Now().Add(time.Hour)}},
		"to":           {filter: deadletters.Filter{To: time.Now().Add(time.Hour)}, want: 3},
		"to before":    {filter: deadletters.Filter{To: time.Now().Add(-time.Hour)}},
		"key and none": {filter: deadletters.Filter{Keys: []string{"K-a"}, Topic: "Payments"}},
	} {
		if got := newest(t, box, c.filter, c.limit); len(got) != c.want {
			t.Errorf("%s: %d letters, want %d", name, len(got), c.want)
		}
	}
}

// More than are read at once, from the end backward, and from the beginning.
func TestList_many(t *testing.T) {
	w := newWorld(t)
	var all []broker.Message
	for i := range 300 {
		all = append(all, broker.Message{Topic: wire.DLQTopic(group), Body: fmt.Appendf(nil, "%d", i), Properties: map[string]string{wire.PropRetryTopic: "Orders"}})
	}
	if err := w.broker.Put(all...); err != nil {
		t.Fatal(err)
	}
	box := w.open(t)
	if got := newest(t, box, deadletters.Filter{}, 200); len(got) != 200 || got[0].Offset != 299 || got[199].Offset != 100 {
		t.Errorf("%d letters", len(got))
	}
	next := int64(0)
	err := box.Each(t.Context(), deadletters.Filter{}, func(l *deadletters.Letter) error {
		if l.Offset != next {
			return fmt.Errorf("offset %d, want %d", l.Offset, next)
		}
		next++
		return nil
	})
	if err != nil || next != 300 {
		t.Errorf("%d, %v", next, err)
	}
}

func TestReasons(t *testing.T) {
	w := newWorld(t)
	w.broker.CreateTopic(deadletters.FailureTopic, 1)
	w.die(t, w.client, "a1", "b1")
	box := w.open(t)
	letters := newest(t, box, deadletters.Filter{}, 0)
	record := func(name, identity, group, text string, at time.Time) {
		t.Helper()
		body, err := json.Marshal(map[string]any{name: identity, "group": group, "attempt": 1, "verdict": "reject", "class": "empty", "text": text, "failed": at})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.broker.Put(broker.Message{Topic: deadletters.FailureTopic, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	record("msg_id", letters[0].OriginID, group, "an earlier one", letters[0].Died.Add(-time.Second))
	record("identity", letters[0].OriginID, group, "no such customer", letters[0].Died) // of a streamd of before
	record("msg_id", letters[0].OriginID, "another", "another group's", letters[0].Died)
	if err := w.broker.Put(broker.Message{Topic: deadletters.FailureTopic, Body: []byte("no record")}); err != nil {
		t.Fatal(err)
	}
	if notes := box.Reasons(t.Context(), deadletters.FailureTopic, letters); len(notes) != 0 {
		t.Errorf("notes %q", notes)
	}
	if r := letters[0].Reason; r == nil || r.Text != "no such customer" || letters[1].Reason != nil {
		t.Errorf("reasons %+v, %+v", r, letters[1].Reason)
	}
	if notes := box.Reasons(t.Context(), "NoSuchTopic", letters); len(notes) != 1 {
		t.Errorf("notes %q", notes)
	}
	var text strings.Builder
	if err := (&deadletters.Listing{Box: box, Total: box.Count(), Letters: letters}).Text(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"DEAD LETTERS  2 in %DLQ%billing", "empty: no such customer", letters[1].ID, "K-a"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, text.String())
		}
	}
}

// Without the right on the failure records the dead letters are listed; one note says what grants it, not one for each queue.
func TestReasons_refused(t *testing.T) {
	w := newGuardedWorld(t, func(_ netip.Addr, cmd *wire.Command) (string, bool) {
		return "User:app has no permission to access Topic:STREAMD_FAILURES from 127.0.0.1, no matched policies.", cmd.RequestCode() != wire.ReqSearchOffsetByTimestamp
	})
	w.broker.CreateTopic(deadletters.FailureTopic, 4)
	w.die(t, w.client, "a1")
	box := w.open(t)
	notes := box.Reasons(t.Context(), deadletters.FailureTopic, newest(t, box, deadletters.Filter{}, 0))
	if len(notes) != 1 || !strings.Contains(notes[0], "-r Topic:STREAMD_FAILURES -a Sub,Get -d Allow") || !strings.Contains(notes[0], "--failures -") {
		t.Errorf("notes %q", notes)
	}
}

func TestShow(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("x", 8<<10) // stored compressed
	w.die(t, w.client, "a\x1b[31m"+long)
	l, err := w.open(t).Find(t.Context(), newest(t, w.open(t), deadletters.Filter{}, 0)[0].UniqueKey)
	if err != nil {
		t.Fatal(err)
	}
	body, err := l.Body()
	if err != nil || string(body) != "a\x1b[31m"+long {
		t.Errorf("body of %d bytes, %v", len(body), err)
	}
	var text strings.Builder
	if err := l.Text(&text); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "\x1b") || !strings.Contains(text.String(), "bytes more") || !strings.Contains(text.String(), "color") {
		t.Errorf("%s", text.String())
	}
	if _, err := w.open(t).Find(t.Context(), "nothing"); err == nil || !strings.Contains(err.Error(), "no dead letter") {
		t.Errorf("%v", err)
	}
}

func TestOpen_writeOnly(t *testing.T) {
	w := newWorld(t)
	w.broker.PutTopic(wire.TopicConfig{Name: wire.DLQTopic(group), ReadQueues: 1, WriteQueues: 1, Perm: 2, FilterType: wire.FilterTypeSingleTag})
	_, err := deadletters.Open(t.Context(), w.client, group)
	if !errors.Is(err, deadletters.ErrUnreadable) || !strings.Contains(err.Error(), "updateTopicPerm -n NAMESERVER -c CLUSTER -t '%DLQ%billing' -p 6") {
		t.Errorf("%v", err)
	}
}

// mqadmin knows no namespace: what it is to be told has the whole name.
func TestOpen_writeOnlyInANamespace(t *testing.T) {
	w := newWorld(t)
	w.broker.PutTopic(wire.TopicConfig{Name: "%DLQ%INST_1%billing", ReadQueues: 1, WriteQueues: 1, Perm: 2, FilterType: wire.FilterTypeSingleTag})
	_, err := deadletters.Open(t.Context(), brokertest.Client(t, w.broker, "", func(c *rocketmq.Config) { c.Namespace = "INST_1" }), group)
	if !errors.Is(err, deadletters.ErrUnreadable) || !strings.Contains(err.Error(), "-t '%DLQ%INST_1%billing' -p 6") {
		t.Errorf("%v", err)
	}
}

func journal(t *testing.T, path string) *deadletters.Journal {
	t.Helper()
	j, err := deadletters.OpenJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func shut(t *testing.T, j *deadletters.Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

// The copy goes to the group's own retry topic with what it had, once however often it is asked for.
func TestRedrive(t *testing.T) {
	w := newWorld(t)
	w.broker.CreateTopic(wire.RetryTopic(group), 1)
	w.die(t, w.client, "a1", "b1", "a2")
	if err := deadletters.CheckRetry(t.Context(), w.client, group); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "journal")
	redrive := func(f deadletters.Filter, o deadletters.Options) deadletters.Summary {
		t.Helper()
		j := journal(t, path)
		defer shut(t, j)
		o.Uncertain = deadletters.UncertainStop
		sum, err := w.open(t).Redrive(t.Context(), w.client, j, f, o, func(deadletters.Outcome) {})
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	retry := deadletters.Options{To: deadletters.ToRetry}
	if sum := redrive(deadletters.Filter{}, deadletters.Options{To: deadletters.ToRetry, DryRun: true}); sum.Planned != 3 || len(w.broker.Messages(wire.RetryTopic(group))) != 0 {
		t.Errorf("dry run: %+v", sum)
	}
	if sum := redrive(deadletters.Filter{Keys: []string{"K-b"}}, retry); sum.Sent != 1 {
		t.Errorf("one key: %+v", sum)
	}
	if sum := redrive(deadletters.Filter{}, retry); sum.Sent != 2 || sum.Already != 1 {
		t.Errorf("all: %+v", sum)
	}
	if sum := redrive(deadletters.Filter{}, retry); sum.Sent != 0 || sum.Already != 3 {
		t.Errorf("once more: %+v", sum)
	}
	copies := w.broker.Messages(wire.RetryTopic(group))
	if len(copies) != 3 || len(w.broker.Messages("Orders")) != 3 {
		t.Fatalf("%d copies, %d in the topic", len(copies), len(w.broker.Messages("Orders")))
	}
	letters := newest(t, w.open(t), deadletters.Filter{}, 0)
	for _, c := range copies {
		p := c.Properties
		var l *deadletters.Letter
		for _, one := range letters {
			if one.ID == p[deadletters.PropertyRedriven] {
				l = one
			}
		}
		if l == nil || p[wire.PropOriginMessageID] != l.OriginID || p[wire.PropUniqueKey] != l.UniqueKey || p["traceparent"] != traceparent || p["color"] != "red" ||
			p[wire.PropRetryTopic] != "Orders" || p[wire.PropWait] != "true" || p[wire.PropDelayLevel] != "" {
			t.Errorf("copy %+v", p)
		}
	}
	if sum := redrive(deadletters.Filter{IDs: []string{letters[0].ID}}, deadletters.Options{To: deadletters.ToTopic, Again: true}); sum.Sent != 1 {
		t.Errorf("again: %+v", sum)
	}
	last := w.broker.Messages("Orders")[3]
	if last.Properties[wire.PropRetryTopic] != "" || last.Properties[deadletters.PropertyRedriven] != letters[0].ID || !bytes.Equal(last.Body, []byte("a2")) {
		t.Errorf("copy %+v", last)
	}
}

// sender stores nothing and says what it is told to.
type sender struct {
	errs []error
	n    int
}

func (s *sender) Send(context.Context, *rocketmq.OutgoingMessage) (rocketmq.SendResult, error) {
	s.n++
	return rocketmq.SendResult{OffsetMessageID: fmt.Sprintf("new-%d", s.n)}, s.errs[s.n-1]
}

// A refusal ends it, and the next run goes on there.
func TestRedrive_refused(t *testing.T) {
	w := newWorld(t)
	w.die(t, w.client, "a1", "b1", "a2")
	path := filepath.Join(t.TempDir(), "journal")
	o := deadletters.Options{To: deadletters.ToRetry, Uncertain: deadletters.UncertainStop}
	refused := errors.New("the disk is full")
	j := journal(t, path)
	sum, err := w.open(t).Redrive(t.Context(), &sender{errs: []error{nil, refused}}, j, deadletters.Filter{}, o, func(deadletters.Outcome) {})
	if !errors.Is(err, refused) || sum.Sent != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
	shut(t, j)
	j = journal(t, path)
	sum, err = w.open(t).Redrive(t.Context(), &sender{errs: []error{nil, nil}}, j, deadletters.Filter{}, o, func(deadletters.Outcome) {})
	if err != nil || sum.Sent != 2 || sum.Already != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
	shut(t, j)
}

// A process that died in the midst of a send: that one waits for a word, whatever half line the journal ends in.
func TestRedrive_uncertain(t *testing.T) {
	w := newWorld(t)
	w.die(t, w.client, "a1", "b1", "a2")
	letters := newest(t, w.open(t), deadletters.Filter{}, 0)
	for _, c := range []struct {
		uncertain     string
		sent, skipped int
	}{{deadletters.UncertainStop, 0, 0}, {deadletters.UncertainSkip, 1, 1}, {deadletters.UncertainSend, 2, 0}} {
		path := filepath.Join(t.TempDir(), "journal")
		text := `{"id":"` + letters[2].ID + `","state":"sending"}` + "\n" + `{"id":"` + letters[2].ID + `","state":"sent"}` + "\n" +
			`{"id":"` + letters[1].ID + `","state":"sending"}` + "\n" + `{"id":"` + letters[0].ID + `","sta`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		j := journal(t, path)
		sum, err := w.open(t).Redrive(t.Context(), &sender{errs: []error{nil, nil, nil}}, j, deadletters.Filter{}, deadletters.Options{To: deadletters.ToRetry, Uncertain: c.uncertain}, func(deadletters.Outcome) {})
		stopped, isStopped := errors.AsType[*deadletters.UncertainError](err)
		if isStopped != (c.uncertain == deadletters.UncertainStop) || sum.Sent != c.sent || sum.Skipped != c.skipped {
			t.Errorf("%s: %+v, %v", c.uncertain, sum, err)
		}
		if isStopped && (len(stopped.IDs) != 1 || stopped.IDs[0] != letters[1].ID) {
			t.Errorf("uncertain %v", stopped.IDs)
		}
		shut(t, j)
	}
}

// A stop ends it between two messages; a rate spaces them.
func TestRedrive_stopped(t *testing.T) {
	w := newWorld(t)
	w.die(t, w.client, "a1", "b1")
	j := journal(t, filepath.Join(t.TempDir(), "journal"))
	defer shut(t, j)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := deadletters.Options{To: deadletters.ToRetry, Uncertain: deadletters.UncertainStop, Rate: 0.001}
	sum, err := w.open(t).Redrive(ctx, &sender{errs: []error{nil, nil}}, j, deadletters.Filter{}, o, func(deadletters.Outcome) { cancel() })
	if !errors.Is(err, context.Canceled) || sum.Sent != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
}

func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := journal(t, path)
	if _, err := deadletters.OpenJournal(path); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second redrive: %v", err)
	}
	shut(t, j)
	if err := os.WriteFile(path, []byte("streams: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := deadletters.OpenJournal(path); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("another file: %v", err)
	}
}

// Brokers divert what is sent to the retry topic of a group that keeps order.
func TestCheckRetry(t *testing.T) {
	w := newWorld(t)
	if err := deadletters.CheckRetry(t.Context(), w.client, group); err == nil || !strings.Contains(err.Error(), "--to topic") {
		t.Errorf("without a retry topic: %v", err)
	}
	info := &wire.ConsumerRunningInfo{Properties: map[string]string{wire.RunningOrderly: "true"}}
	spec := rocketmq.GroupSpec{Name: group, FromWhere: rocketmq.FromLast, RunningInfo: func(bool) *wire.ConsumerRunningInfo { return info }, Subscriptions: func() []rocketmq.Subscription {
		return []rocketmq.Subscription{{Topic: "Orders", Expression: "*", Type: rocketmq.FilterTag, Version: 1}}
	}}
	brokertest.Join(t, w.broker, "m@1", spec)
	c := brokertest.Client(t, w.broker, "") // asks anew: the retry topic came with the member
	if err := deadletters.CheckRetry(t.Context(), c, group); err == nil || !strings.Contains(err.Error(), "keeps order") {
		t.Errorf("ordered: %v", err)
	}
}

// Names are shown without the namespace, and go out with it.
func TestNamespace(t *testing.T) {
	w := newWorld(t)
	w.broker.CreateTopic("NS%Orders", 1)
	w.broker.CreateTopic("%RETRY%NS%"+group, 1)
	w.broker.PutGroup(w.broker.NewGroup("NS%" + group))
	c := brokertest.Client(t, w.broker, "", func(c *rocketmq.Config) { c.Namespace = "NS" })
	w.die(t, c, "a1")
	box, err := deadletters.Open(t.Context(), c, group)
	if err != nil {
		t.Fatal(err)
	}
	letters := newest(t, box, deadletters.Filter{}, 0)
	if len(letters) != 1 || letters[0].OriginTopic != "Orders" {
		t.Fatalf("%+v", letters)
	}
	j := journal(t, filepath.Join(t.TempDir(), "journal"))
	defer shut(t, j)
	for _, to := range []string{deadletters.ToRetry, deadletters.ToTopic} {
		if _, err := box.Redrive(t.Context(), c, j, deadletters.Filter{}, deadletters.Options{To: to, Again: true}, func(deadletters.Outcome) {}); err != nil {
			t.Fatal(err)
		}
	}
	if copies := w.broker.Messages("%RETRY%NS%" + group); len(copies) != 1 || copies[0].Properties[wire.PropRetryTopic] != "NS%Orders" || len(w.broker.Messages("NS%Orders")) != 2 {
		t.Errorf("copies %+v", copies)
	}
}
