package interop

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/deadletters"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// TestDLQ_redrive has a real broker make dead letters, lists them with their reasons, and redrives one: the group's member
// handles it again under the same id and trace, nothing is stored in the topic that others read, and a second run sends nothing.
func TestDLQ_redrive(t *testing.T) {
	p := mainCluster(t)
	topic, group := p.topic(t, "Buried", 2), "buried"
	c := newClient(t, p.Addr)
	m := p.streamd(t, stream{group: group, topic: topic}).ready(t)
	const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for _, key := range []string{"A-1", "A-2"} {
		_, err := c.Send(t.Context(), &rocketmq.OutgoingMessage{Topic: topic, Keys: []string{key}, Body: []byte("reject " + key), Properties: map[string]string{"traceparent": traceparent}})
		if err != nil {
			t.Fatal(err)
		}
	}
	list := func() deadletters.Listing {
		t.Helper()
		var l deadletters.Listing
		until(t, time.Minute, "two dead letters", func() (bool, string) {
			out, err := p.try(t, "dlq", "list", "--group", group, "-n", p.Addr, "-o", "json")
			if err != nil {
				return false, err.Error()
			}
			l = deadletters.Listing{}
			if err := json.Unmarshal([]byte(out), &l); err != nil {
				return false, err.Error()
			}
			for _, one := range l.Letters {
				if one.Reason == nil {
					return false, "no reason for " + one.ID
				}
			}
			return len(l.Letters) >= 2, fmt.Sprint(len(l.Letters))
		})
		return l
	}
	letters := list().Letters
	for _, l := range letters {
		if l.OriginTopic != topic || l.Attempts != 1 || l.TraceID != strings.Split(traceparent, "-")[1] || l.Reason.Verdict != "reject" {
			t.Errorf("letter %+v, reason %+v", l, l.Reason)
		}
	}
	if out := p.command(t, "dlq", "show", "--group", group, "-n", p.Addr, letters[0].ID); !strings.Contains(out, "reject A-") || !strings.Contains(out, traceparent) {
		t.Errorf("%s", out)
	}

	args := []string{"dlq", "redrive", "--group", group, "-n", p.Addr, "--id", letters[0].ID, "--journal", filepath.Join(t.TempDir(), "journal")}
	if out := p.command(t, append(args, "--dry-run")...); !strings.Contains(out, "1 would be sent") {
		t.Errorf("%s", out)
	}
	if out := p.command(t, args...); !strings.Contains(out, "1 chosen, 1 sent") {
		t.Errorf("%s", out)
	}
	if out := p.command(t, args...); !strings.Contains(out, "0 sent, 1 already sent") {
		t.Errorf("%s", out)
	}
	// The handler rejects it again: a dead letter more, which is the same message.
	again := readAll(t, c, group, wire.DLQTopic(group), 3)
	redriven := 0
	for _, one := range again {
		if v, _ := one.Property(deadletters.PropertyRedriven); string(v) == letters[0].ID {
			redriven++
			trace, _ := one.Property("traceparent")
			if wire.Identity(&one.Message) != letters[0].OriginID || string(trace) != traceparent {
				t.Errorf("redriven as %s with trace %s, want %s", wire.Identity(&one.Message), trace, letters[0].OriginID)
			}
		}
	}
	if redriven != 1 {
		t.Errorf("%d dead letters were redriven, want one", redriven)
	}
	if n := len(readAllNow(t, c, topic)); n != 2 {
		t.Errorf("%d messages in the topic that others read, want 2", n)
	}
	m.stop(t)
}

// try runs streamd and returns its standard output.
func (p *place) try(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), built(t, shared.streamd), args...)
	var talk strings.Builder
	cmd.Stderr = &talk
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("streamd %s: %w: %s", args[0], err, talk.String())
	}
	return string(out), err
}
