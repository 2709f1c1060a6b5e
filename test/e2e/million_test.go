package e2e_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/porttest"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/remoting"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

const (
	manyQueues   = 4
	manyMessages = 1_000_000
	manyDelays   = 10_000
)

// brokerProcess is `streamd broker` on a data folder.
type brokerProcess struct {
	t    *testing.T
	addr string
	dir  string
	log  string
	cmd  *exec.Cmd
}

// start starts the process and waits until it answers; it returns how long that took.
func (p *brokerProcess) start() time.Duration {
	p.t.Helper()
	log, err := os.OpenFile(p.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the child has its own
	p.cmd = exec.Command(built.streamd, "broker", "--listen", p.addr, "--data", p.dir, "--topic", fmt.Sprintf("Many:%d", manyQueues), "--topic", "Late:1")
	p.cmd.Stdout, p.cmd.Stderr = log, log
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	cmd := p.cmd
	p.t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); ; {
		err := p.asked()
		if err == nil {
			return time.Since(began)
		}
		select {
		case <-tick.C:
		case <-late:
			text, _ := os.ReadFile(p.log)
			p.t.Fatalf("the broker does not answer: %v\n%s", err, text)
		}
	}
}

// asked asks the broker for an offset.
func (p *brokerProcess) asked() error {
	c, err := remoting.Dial(patient(p.t), p.addr, remoting.Config{Buffers: &remoting.Buffers{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer c.Close()
	reply, err := c.Call(patient(p.t), wire.NewRequest(&wire.MaxOffsetRequest{Topic: "Many"}, nil))
	if err != nil {
		return err
	}
	defer reply.Release()
	if reply.Code != int32(wire.RespSuccess) {
		return fmt.Errorf("code %d: %s", reply.Code, reply.Remark)
	}
	return nil
}

// kill is kill -9.
func (p *brokerProcess) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	_ = p.cmd.Wait() // it says that it was killed
}

// stop is SIGTERM, and wants exit code 0.
func (p *brokerProcess) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Error(err)
	}
}

// fill stores messages "0" to "N-1" in turn over the queues of Many, and delayed ones for Late.
func (p *brokerProcess) fill(due time.Time) {
	p.t.Helper()
	numbers := []string{fmt.Sprint(manyQueues), fmt.Sprint(manyMessages), fmt.Sprint(manyDelays), fmt.Sprint(due.UnixMilli())}
	out, err := exec.CommandContext(patient(p.t), built.fill, append([]string{p.dir, p.addr}, numbers...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
}

// TestBroker_restartsWithAMillionMessages: with a million messages and 10,000 that wait for their time, the broker serves again
// after each restart: first and last message of each queue, offsets, the next message's place; and what waited comes once,
// though it is killed again before, or while, that comes.
func TestBroker_restartsWithAMillionMessages(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := &brokerProcess{t: t, addr: porttest.Reserve(t), dir: s.path("data"), log: s.path("broker.log")}
	p.start()
	p.stop()
	began := time.Now()
	p.fill(time.Now().Add(10 * time.Second))
	t.Logf("stored %d messages in %s", manyMessages+manyDelays, time.Since(began).Round(time.Millisecond))

	t.Logf("answers %s after its start", p.start().Round(time.Millisecond))
	c := clientOf(t, p.addr)
	many := must(c.Queues(t.Context(), "Many"))(t)
	p.serves(c, many, 0)
	p.kill()
	t.Logf("answers %s after its start, killed before", p.start().Round(time.Millisecond))
	p.serves(c, many, 1)

	late := must(c.Queues(t.Context(), "Late"))(t)[0]
	var got []string
	s.until("what waited for its time is delivered", func() (bool, string) {
		got = append(got, p.bodies(c, late, int64(len(got)), manyDelays)...)
		return len(got) >= manyDelays, fmt.Sprint(len(got))
	})
	p.kill()
	t.Logf("answers %s after its start, killed again", p.start().Round(time.Millisecond))
	if end := must(c.MaxOffset(patient(t), late))(t); end != manyDelays || len(got) != manyDelays {
		t.Errorf("%d delayed messages were delivered and %d are there, want %d", len(got), end, manyDelays)
	}
	seen := map[string]bool{}
	for _, body := range got {
		if seen[body] || !strings.HasPrefix(body, "late ") {
			t.Fatalf("%q was delivered twice, or is none of them", body)
		}
		seen[body] = true
	}
	p.stop()
}

// serves checks each queue and stores one more message in it; more is how many it got before.
func (p *brokerProcess) serves(c *rocketmq.Client, many []sdk.Queue, more int64) {
	p.t.Helper()
	if len(many) != manyQueues {
		p.t.Fatalf("%d queues, want %d", len(many), manyQueues)
	}
	const each = int64(manyMessages / manyQueues)
	for _, q := range many {
		ctx := patient(p.t)
		if first, end := must(c.MinOffset(ctx, q))(p.t), must(c.MaxOffset(ctx, q))(p.t); first != 0 || end != each+more {
			p.t.Errorf("%s: from %d to %d, want 0 to %d", q, first, end, each+more)
		}
		for _, at := range []int64{0, each / 2, each - 1} {
			if got := p.bodies(c, q, at, 1); len(got) != 1 || got[0] != fmt.Sprint(at*manyQueues+int64(q.ID)) {
				p.t.Errorf("%s@%d is %q", q, at, got)
			}
		}
		r := must(c.Send(ctx, &rocketmq.OutgoingMessage{Topic: q.Topic, Queue: &q, Body: []byte("more")}))(p.t)
		if r.Offset != each+more {
			p.t.Errorf("%s: the next message got offset %d, want %d", q, r.Offset, each+more)
		}
	}
}

// bodies reads at most n messages.
func (p *brokerProcess) bodies(c *rocketmq.Client, q sdk.Queue, from int64, n int) (all []string) {
	p.t.Helper()
	for len(all) < n {
		r := must(c.Pull(patient(p.t), &rocketmq.PullRequest{
			Group: "reader", Queue: q, Offset: from, MaxMessages: min(32, n-len(all)), MaxBytes: 1 << 20,
			Subscription: rocketmq.Subscription{Topic: q.Topic, Expression: "*", Type: rocketmq.FilterTag, Version: 1},
		}))(p.t)
		if r.Status != rocketmq.PullFound {
			r.Release()
			return all
		}
		for rest := r.Body; len(rest) > 0; {
			var m wire.Message
			size, err := m.Decode(rest)
			if err != nil {
				p.t.Fatal(err)
			}
			all, rest = append(all, string(m.Body)), rest[size:]
		}
		from = r.Next
		r.Release()
	}
	return all
}

// must is for calls that have to succeed.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func patient(t *testing.T) context.Context {
	t.Helper()
	return within(t, patience)
}

func clientOf(t *testing.T, address string) *rocketmq.Client {
	t.Helper()
	c, err := rocketmq.New(rocketmq.Config{NameServers: []string{address}, Logger: slog.New(slog.DiscardHandler), CallTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("closing the client: %v", err)
		}
	})
	return c
}
