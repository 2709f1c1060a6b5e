package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/porttest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/test/e2e/record"
)

// patience bounds every wait: a slow machine must not fail a test.
const patience = 5 * time.Minute

// queues is how many queues each topic has.
const queues = 4

// stage is what a test plays on: a folder and brokers. Streams are added, then daemons run them.
type stage struct {
	t       *testing.T
	dir     string
	brokers []*broker.Broker
	names   string // name server of all brokers; empty: each is its own
	env     []string
	streams []*stream
}

// stream is one stream of the config, with the record of its witness.
type stream struct {
	*stage
	name   string
	broker *broker.Broker
	record *record.Reader
	plugin string // YAML of the plugin's entry, without its name
	suffix string // of the plugin's name
	config string // of the handler
	extra  string // of the stream
	put    int    // messages put so far
	bodies []string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	dir, err := os.MkdirTemp(built.dir, "s") //nolint:usetesting // the name of a test makes the path of a socket too long
	if err != nil {
		t.Fatal(err)
	}
	return &stage{t: t, dir: dir}
}

// quick makes the retries of a broker come soon.
func quick() []time.Duration { return slices.Repeat([]time.Duration{50 * time.Millisecond}, 18) }

// newBroker starts a broker; its first one is where streams live if they do not say.
func (s *stage) newBroker(change ...func(*broker.Config)) *broker.Broker {
	s.t.Helper()
	c := broker.Config{DelayLevels: quick(), Name: "broker-" + string(rune('a'+len(s.brokers))), Address: porttest.Reserve(s.t)}
	for _, f := range change {
		f(&c)
	}
	b := broker.New(c)
	if err := b.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := b.Close(); err != nil {
			s.t.Error(err)
		}
	})
	s.brokers = append(s.brokers, b)
	return b
}

// witness adds a stream with a witness plugin of its own.
func (s *stage) witness(name string, b *broker.Broker, extra string) *stream {
	st := s.stream(name, b, fmt.Sprintf("command: [%q]", built.witness), extra)
	st.config = fmt.Sprintf("{file: %q, gate: %q}", s.path(name+".record"), s.path(name+".gate"))
	return st
}

// faulty adds a stream with the misbehaving plugin of the host's tests.
func (s *stage) faulty(name string, b *broker.Broker, mode string) *stream {
	st := s.stream(name, b, fmt.Sprintf("command: [%q, %s]", built.faulty, mode), "")
	st.config = "{}"
	return st
}

func (s *stage) stream(name string, b *broker.Broker, plugin, extra string) *stream {
	st := &stream{stage: s, name: name, broker: b, plugin: plugin, extra: extra, config: "{}", record: record.NewReader(s.path(name + ".record"))}
	b.CreateTopic(st.topic(), queues)
	s.streams = append(s.streams, st)
	return st
}

// mend gives the stream a sound plugin in place of its own, at the next reload.
func (s *stream) mend() {
	s.plugin, s.suffix = fmt.Sprintf("command: [%q]", built.witness), "-mended"
	s.config = fmt.Sprintf("{file: %q}", s.path(s.name+".record"))
}

func (s *stage) path(name string) string { return filepath.Join(s.dir, name) }

func (s *stream) topic() string { return "T-" + s.name }
func (s *stream) group() string { return "g-" + s.name }

// write writes the config of all streams.
func (s *stage) write(top string) string {
	s.t.Helper()
	var b strings.Builder
	b.WriteString("brokers:\n")
	for _, x := range s.brokers {
		names := x.Address()
		if s.names != "" {
			names = s.names
		}
		fmt.Fprintf(&b, "  - {name: %s, name_servers: %q}\n", x.Name(), names)
	}
	b.WriteString("plugins:\n")
	for _, x := range s.streams {
		if x.plugin != "" {
			fmt.Fprintf(&b, "  - {name: %s%s, %s}\n", x.name, x.suffix, x.plugin)
		}
	}
	b.WriteString("handlers:\n")
	for _, x := range s.streams {
		use := ""
		if strings.Contains(x.plugin, built.faulty) {
			use = "use: main, "
		}
		fmt.Fprintf(&b, "  - {name: %s, plugin: %s%s, %sconfig: %s}\n", x.name, x.name, x.suffix, use, x.config)
	}
	b.WriteString("streams:\n")
	for _, x := range s.streams {
		fmt.Fprintf(&b, "  - {name: %s, broker: %s, group: %s, subscribe: [{topic: %s}], start_from: first, handler: %s%s}\n",
			x.name, x.broker.Name(), x.group(), x.topic(), x.name, x.extra)
	}
	if !strings.Contains(top, "shutdown_timeout") {
		top += fmt.Sprintf("shutdown_timeout: %s\n", patience) // as long as a test waits for a clean stop
	}
	b.WriteString("admin: {listen: \"127.0.0.1:0\"}\n" + top)
	path := s.path("streamd.yaml")
	s.save(path, b.String())
	return path
}

func (s *stage) save(path, text string) {
	s.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// open lets a stream's held messages go.
func (s *stream) open() { s.save(s.path(s.name+".gate"), "") }

// feed stores one message for each body, over all queues in turn.
func (s *stream) feed(bodies ...string) {
	s.t.Helper()
	for _, body := range bodies {
		if err := s.broker.Put(broker.Message{Topic: s.topic(), Queue: int32(s.put % queues), Body: []byte(body)}); err != nil {
			s.t.Fatal(err)
		}
		s.put++
		s.bodies = append(s.bodies, body)
	}
}

// numbered makes n bodies that start with a word.
func numbered(word string, n int) []string {
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = fmt.Sprintf("%s %d", word, i)
	}
	return bodies
}

// load feeds ok messages, each a few milliseconds after the one before, until the returned stop is called.
func (s *stream) load(word string) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(4 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-tick.C:
				body := fmt.Sprintf("%s %d", word, i)
				if err := s.broker.Put(broker.Message{Topic: s.topic(), Queue: int32(i % queues), Body: []byte(body)}); err != nil {
					s.t.Error(err)
					return
				}
				s.bodies = append(s.bodies, body)
			case <-quit:
				return
			}
		}
	}()
	stop = sync.OnceFunc(func() { close(quit); <-done })
	s.t.Cleanup(stop) // also of a test that failed before it stopped the load
	return stop
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// until waits for what nothing announces: the state of another process, of a file, of a broker.
func (s *stage) until(what string, ok func() (yes bool, state string)) {
	s.t.Helper()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		yes, state := ok()
		if yes {
			return
		}
		select {
		case <-tick.C:
		case <-late.C:
			s.t.Fatalf("not in %s: %s; last: %s", patience, what, state)
		}
	}
}

// inFlight lists the deliveries that have started and not ended.
func inFlight(lines []record.Line) []record.Line {
	var open []record.Line
	for _, l := range lines {
		if !l.End {
			open = append(open, l)
			continue
		}
		start := l
		start.End, start.Error = false, ""
		if i := slices.Index(open, start); i >= 0 {
			open = slices.Delete(open, i, i+1)
		}
	}
	return open
}

func (s *stream) lines() []record.Line {
	s.t.Helper()
	lines, err := s.record.All()
	if err != nil {
		s.t.Fatal(err)
	}
	return lines
}

// acked counts the acknowledged deliveries by body.
func (s *stream) acked() map[string]int {
	n := map[string]int{}
	for _, l := range s.lines() {
		if l.End && l.Error == "" {
			n[l.Body]++
		}
	}
	return n
}

// handles waits until every body is acknowledged: LOSS 0.
func (s *stream) handles(bodies ...string) {
	s.t.Helper()
	s.until("stream "+s.name+" handles all its messages", func() (bool, string) {
		acked := s.acked()
		missing := slices.DeleteFunc(slices.Clone(bodies), func(b string) bool { return acked[b] > 0 })
		return len(missing) == 0, fmt.Sprintf("%d of %d are missing: %.200v", len(missing), len(bodies), missing)
	})
}

// settles waits until the group has committed everything that is in its topics, and nothing waits for a retry.
func (s *stream) settles() {
	s.t.Helper()
	s.until("stream "+s.name+" commits everything", func() (bool, string) {
		if n := s.broker.Delayed(); n > 0 {
			return false, fmt.Sprintf("%d messages wait for their delay", n)
		}
		for topic, n := range map[string]int32{s.topic(): queues, wire.RetryTopic(s.group()): 1} {
			for q := range n {
				_, end := s.broker.Bounds(topic, q)
				// An empty queue's start is committed too, and until it is there is something to lose.
				if at, ok := s.broker.Committed(s.group(), topic, q); !ok || at != end {
					return false, fmt.Sprintf("%s/%d: committed %d (%t) of %d", topic, q, at, ok, end)
				}
			}
		}
		return true, ""
	})
}

// committed is the sum of the group's offsets.
func (s *stream) committed() (sum int64) {
	for q := range int32(queues) {
		at, _ := s.broker.Committed(s.group(), s.topic(), q)
		sum += at
	}
	return sum
}

// burned fails the test when the group sent anything back or dead-lettered it.
func (s *stream) unburned() {
	s.t.Helper()
	retries, dead := s.broker.Messages(wire.RetryTopic(s.group())), s.broker.DeadLetters(s.group())
	if len(retries)+len(dead) > 0 {
		s.t.Errorf("stream %s: %d retries and %d dead letters", s.name, len(retries), len(dead))
	}
}

// once fails the test when a message was delivered more than once.
func (s *stream) once() {
	s.t.Helper()
	for body, n := range s.acked() {
		if n != 1 {
			s.t.Errorf("stream %s: %q was handled %d times", s.name, body, n)
		}
	}
}

func contains(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not say %q", text, want)
		}
	}
}
