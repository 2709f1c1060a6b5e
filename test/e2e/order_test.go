package e2e_test

import (
	"fmt"
	"testing"

	"github.com/streamd/streamd/internal/broker"
)

// In an ordered stream the plugin dies in mid-batch, heads fail, its binary is replaced while it works, and a reload takes the
// order from keys to queues: no message starts before the earlier ones of its key were acknowledged. Nothing is sent back, a
// rejected message is dead-lettered in its place, and the stop gives the locks back.
func TestOrder_holdsOverCrashesRetriesAndReloads(t *testing.T) {
	t.Parallel()
	const keys = 3
	s := newStage(t)
	b := s.newBroker()
	st := s.witness("ordered", b, ", order: key, retry: {backoff: {first: 20ms, max: 100ms}}")
	feed := func(bodies ...string) {
		for _, body := range bodies {
			at := st.put / queues % keys // the offset's place among the keys of its queue
			m := broker.Message{Topic: st.topic(), Queue: int32(st.put % queues), Body: []byte(body), Properties: map[string]string{"__SHARDINGKEY": fmt.Sprint("k", at)}}
			if err := b.Put(m); err != nil {
				t.Fatal(err)
			}
			st.put++
			st.bodies = append(st.bodies, body)
		}
	}
	bodies := numbered("slow 5", 200)
	bodies[60], bodies[101], bodies[130] = "once 60", "once 101", "reject 130"
	for i := 7; i < 200; i += 31 {
		bodies[i] = fmt.Sprintf("fail 2 %d", i)
	}
	feed(bodies...)
	d := s.run(1)
	s.until("the queues are locked", func() (bool, string) {
		owner := b.LockOwner(st.group(), st.topic(), 0)
		return owner != "", owner
	})
	handled := func(all []string) (rest []string) {
		for _, body := range all {
			if body != "reject 130" {
				rest = append(rest, body)
			}
		}
		return rest
	}
	st.handles(handled(bodies)...)
	st.inOrder(keys)
	more := numbered("slow 6", 100)
	feed(more...)
	st.mend() // another plugin, while the first has messages
	st.extra = ", order: queue, retry: {backoff: {first: 20ms, max: 100ms}}"
	d.reload()
	st.handles(handled(st.bodies)...)
	st.settles()
	st.inOrder(keys)
	if n := len(b.Messages("%RETRY%" + st.group())); n > 0 {
		t.Errorf("%d messages were sent back", n)
	}
	if dead := b.DeadLetters(st.group()); len(dead) != 1 || string(dead[0].Body) != "reject 130" {
		t.Errorf("%d dead letters", len(dead))
	}
	d.stop()
	for q := range int32(queues) {
		if owner := b.LockOwner(st.group(), st.topic(), q); owner != "" {
			t.Errorf("after the stop the lock of queue %d is %s's", q, owner)
		}
	}
}

// inOrder wants each start to come after the acknowledgments of all earlier messages of its key, as the plugins wrote them.
func (s *stream) inOrder(keys int64) {
	s.t.Helper()
	type strand struct {
		queue int32
		key   int64
	}
	next := map[strand]int64{}
	for _, l := range s.lines() {
		k := strand{l.Queue, l.Offset % keys}
		if _, ok := next[k]; !ok {
			next[k] = l.Offset % keys
		}
		switch {
		case !l.End && l.Offset > next[k]:
			s.t.Fatalf("%q, offset %d of queue %d, starts before offset %d of its key is handled", l.Body, l.Offset, l.Queue, next[k])
		case l.End && (l.Error == "" || l.Body == "reject 130"):
			next[k] = max(next[k], l.Offset+keys)
		}
	}
}
