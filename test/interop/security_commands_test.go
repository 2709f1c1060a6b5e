package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/deadletters"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// The resources of the commands' rights, as 5.x writes them.
const (
	onTopic, onGroup, onLetters = "Topic:" + secTopic, "Group:" + secGroup, "Topic:" + wire.DLQPrefix + secGroup
	onTools, onRecords          = "Group:" + wire.ToolsGroup, "Topic:" + deadletters.FailureTopic
)

// errand is what an operator's account does with commands that need the same rights.
type errand struct {
	account  string
	lacks    []lack
	commands [][]string // all but the first change nothing
	says     []string   // each of them, in the end
	notes    bool       // also of what it may not, beside what it was asked for
}

// lack is a right that an errand needs.
type lack struct {
	resource string
	grants   []string // one after the other: all but the last are not enough
	noted    bool     // without it the command does its work, and a note tells what it could not
}

// commands has an account for each errand, which gets one right after the other, each when a command has named it: what works in
// the end has all that docs/security.md lists for it, and nothing else.
func (f *fortress) commands(t *testing.T) {
	t.Helper()
	f.opened(t)
	ids := f.letters(t)
	five := func(of5, of4 []lack) []lack {
		if f.old {
			return of4
		}
		return of5
	}
	list := f.configOf(t, "list-app")
	f.earns(t, &errand{
		account: "list-app", says: []string{ids[0]},
		commands: [][]string{{"dlq", "list", "--group", secGroup, "-c", list}, {"dlq", "show", ids[0], "--group", secGroup, "-c", list}},
		lacks: five(
			[]lack{{onLetters, []string{"Get", "Sub,Get"}, false}, {onTools, []string{"Sub"}, false}, {onRecords, []string{"Pub", "Get", "Sub,Get"}, true}},
			[]lack{{onLetters, []string{"Sub"}, false}, {onTools, []string{"Sub"}, false}, {onRecords, []string{"Pub", "Sub"}, true}},
		),
	})
	f.keeps(t, list)

	f.allow(t, "redrive-app", map[string]string{onLetters: "Sub,Get", onTools: "Sub"})
	redrive := func(id, to string) [][]string {
		return [][]string{{"dlq", "redrive", "--group", secGroup, "-c", f.configOf(t, "redrive-app"), "--id", id, "--to", to, "--journal", filepath.Join(t.TempDir(), "journal")}}
	}
	f.earns(t, &errand{
		account: "redrive-app", commands: redrive(ids[0], "retry"), says: []string{"1 chosen, 1 sent"},
		lacks: five([]lack{{onGroup, []string{"Get", "Sub,Get"}, false}}, []lack{{onGroup, []string{"Sub"}, false}}),
	})
	f.earns(t, &errand{account: "redrive-app", commands: redrive(ids[1], "topic"), says: []string{"1 chosen, 1 sent"}, lacks: []lack{{onTopic, []string{"Pub"}, false}}})

	f.earns(t, &errand{
		account: "init-app", commands: [][]string{{"init", "--from-group", secGroup, "-c", f.configOf(t, "init-app")}}, says: []string{"group: " + secGroup, "topic: " + secTopic},
		lacks: five([]lack{{onGroup, []string{"Get"}, false}}, nil),
	})
	// What was redriven waits in both topics for a member, and has an age.
	f.earns(t, &errand{
		account: "status-app", commands: [][]string{{"group", "status", secGroup, "-c", f.configOf(t, "status-app")}}, says: []string{secTopic},
		lacks: five(
			[]lack{{onGroup, []string{"Get"}, false}, {onTopic, []string{"Sub"}, true}, {onTools, []string{"Sub"}, true}},
			[]lack{{onGroup, []string{"Sub"}, true}, {onTopic, []string{"Sub"}, true}, {onTools, []string{"Sub"}, true}},
		),
	})

	if !f.old { // what status asks of a broadcasting group
		_, err := f.client(t, "no-topic-app", secSecret).ConsumeStats(t.Context(), "broker-a", secGroup, secTopic)
		f.refused(t, "the ends of a topic without it", err, rocketmq.Refusal{Kind: rocketmq.RefusedRight, Resource: onTopic}, "Sub,Get")
	}

	m := f.astray(t)
	f.earns(t, &errand{
		account: "release-app", commands: [][]string{{"group", "release", secGroup, "--at", "max", "-c", f.configOf(t, "release-app")}}, says: []string{"taken"}, notes: true,
		lacks: five(
			[]lack{{onGroup, []string{"Get", "Sub,Get"}, false}, {onTopic, []string{"Get", "Sub,Get"}, false}},
			[]lack{{onGroup, []string{"Sub"}, false}, {onTopic, []string{"Sub"}, false}},
		),
	})
	m.stop(t)
}

// opened makes the dead letters write-only, as old brokers made them, and opens them again by what the command says.
func (f *fortress) opened(t *testing.T) {
	t.Helper()
	f.run(t, "updateTopicPerm", "-c", "DefaultCluster", "-t", wire.DLQTopic(secGroup), "-p", "2")
	list := []string{"dlq", "list", "--group", secGroup, "-c", f.configOf(t, "operator")}
	var advice string
	until(t, time.Minute, "dead letters that cannot be read", func() (bool, string) {
		said, code := f.ask(t, list...)
		_, advice, _ = strings.Cut(said, "is write-only (perm 2) at broker broker-a; open it with: mqadmin ")
		return code == 3 && advice != "", said
	})
	advice = strings.NewReplacer("-n NAMESERVER ", "", "CLUSTER", "DefaultCluster", "'", "").Replace(strings.TrimSpace(advice))
	f.run(t, strings.Fields(advice)...)
	until(t, time.Minute, "dead letters that can be read", func() (bool, string) {
		said, code := f.ask(t, list...)
		return code == 0, said
	})
}

// letters are the ids of two dead letters.
func (f *fortress) letters(t *testing.T) []string {
	t.Helper()
	out, err := f.try(t, "dlq", "list", "--group", secGroup, "-c", f.configOf(t, "operator"), "-o", "json")
	var l deadletters.Listing
	if err == nil {
		err = json.Unmarshal([]byte(out), &l)
	}
	if err != nil || len(l.Letters) < 2 {
		t.Fatalf("%v: %s", err, out)
	}
	return []string{l.Letters[0].ID, l.Letters[1].ID}
}

// keeps shows that a second grant on a topic takes the first one's rights, as its words tell, and that all at once are kept.
func (f *fortress) keeps(t *testing.T, config string) {
	t.Helper()
	records := lack{resource: onRecords}
	list := func() string {
		said, code := f.ask(t, "dlq", "list", "--group", secGroup, "-c", config)
		if code != 0 || !f.old && strings.Contains(said, "grant it") && !strings.Contains(said, "-a Pub,Sub,Get if it has other rights") {
			t.Errorf("dlq list ends with %d:\n%s", code, said)
		}
		return said
	}
	if !f.old {
		f.allow(t, "list-app", map[string]string{onRecords: "Pub"})
		if said := list(); !f.named(&records, said) {
			t.Errorf("a grant of Pub left Sub,Get on the topic:\n%s", said)
		}
	}
	f.allow(t, "list-app", map[string]string{onRecords: "Pub,Sub,Get"})
	c := f.client(t, "list-app", secSecret)
	until(t, time.Minute, "reading and sending failure records", func() (bool, string) {
		if said := list(); f.named(&records, said) {
			return false, said
		}
		_, err := c.Send(t.Context(), &rocketmq.OutgoingMessage{Topic: deadletters.FailureTopic, Body: []byte("no record")})
		return err == nil, fmt.Sprint(err)
	})
}

// astray starts a member whose group stands behind the end of a queue, which it holds.
func (f *fortress) astray(t *testing.T) *member {
	t.Helper()
	operator := f.client(t, "operator", secSecret)
	queues, err := operator.Queues(t.Context(), secTopic)
	if err == nil {
		_, err = operator.Commit(t.Context(), secGroup, queues[0], 1000)
	}
	if err != nil {
		t.Fatal(err)
	}
	m := f.place.streamd(t, f.signed("whole-app", "emit: "+secOutput))
	m.tells(t, "offset_out_of_range")
	return m
}

// configOf writes the config that an account's commands get.
func (f *fortress) configOf(t *testing.T, account string) string {
	t.Helper()
	s, dir := f.signed(account, ""), t.TempDir()
	text := fmt.Sprintf(configText, f.Addr, ", "+s.broker, built(t, shared.ledger), filepath.Join(dir, "ledger"), "", s.group, s.topic, "", filepath.Join(dir, "state"))
	path := filepath.Join(dir, "streamd.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ask runs streamd and returns what it said on both streams, and its exit code.
func (f *fortress) ask(t *testing.T, args ...string) (said string, code int) {
	t.Helper()
	out, err := exec.CommandContext(within(t, patience), built(t, shared.streamd), args...).CombinedOutput()
	if strings.Contains(string(out), secSecret) {
		t.Errorf("streamd %s tells the secret", strings.Join(args, " "))
	}
	if exit, ended := errors.AsType[*exec.ExitError](err); ended {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}

// earns runs an errand and grants what its commands name until they do their work. Each right must have been named, by each
// command, and one that it cannot do without by exit code 1.
func (f *fortress) earns(t *testing.T, e *errand) {
	t.Helper()
	f.allow(t, e.account, nil)
	lacks, granted := e.lacks, []lack{}
	among := func(list []lack, said string, code int) int {
		return slices.IndexFunc(list, func(l lack) bool { return f.named(&l, said) && (code == 0) == l.noted })
	}
	var said string
	var code int
	until(t, 5*time.Minute, strings.Join(e.commands[0], " ")+" with its least rights", func() (bool, string) {
		said, code = f.ask(t, e.commands[0]...)
		at := among(lacks, said, code)
		if at < 0 { // 4.x reads its file a moment later, and a busy broker may answer too late
			return code == 0 && len(lacks) == 0 && among(granted, said, code) < 0, fmt.Sprintf("it ends with %d, and is to name one of %+v:\n%s", code, lacks, said)
		}
		for _, other := range e.commands[1:] {
			if said, code := f.ask(t, other...); among(lacks[at:at+1], said, code) < 0 {
				return false, fmt.Sprintf("streamd %s ends with %d and does not name %s:\n%s", strings.Join(other, " "), code, lacks[at].resource, said)
			}
		}
		l := lacks[at]
		f.allow(t, e.account, map[string]string{l.resource: l.grants[0]})
		lacks = slices.Delete(slices.Clone(lacks), at, at+1)
		if l.grants = l.grants[1:]; len(l.grants) > 0 {
			lacks = append(lacks, l)
		} else {
			granted = append(granted, l)
		}
		return false, said
	})
	for i, command := range e.commands {
		if i > 0 {
			said, code = f.ask(t, command...)
		}
		for _, text := range e.says {
			if code != 0 || !strings.Contains(said, text) || !e.notes && strings.Contains(said, " lacks ") {
				t.Errorf("streamd %s with its least rights ends with %d, and should say %q:\n%s", strings.Join(command, " "), code, text, said)
			}
		}
	}
}

// named tells whether a command says that a right is missing, and what grants it.
func (f *fortress) named(l *lack, said string) bool {
	kind, name, _ := strings.Cut(l.resource, ":")
	grant := "mqadmin createAcl -n NAMESERVER -c CLUSTER -s User:"
	if f.old {
		grant = name + "="
	}
	return strings.Contains(said, fmt.Sprintf(" on %s %s; grant it", strings.ToLower(kind), name)) && strings.Contains(said, grant)
}
