package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
	"github.com/streamd/streamd/sdk"
)

// batched makes one stored batch of parts, compressed when asked for, in the place of a queue's messages.
func batched(t *testing.T, first *wire.Message, parts []string, compressed bool) []byte {
	t.Helper()
	m := *first
	m.SysFlag |= wire.SysFlagInnerBatch | wire.SysFlagNeedUnwrap
	m.Body = nil
	for _, body := range parts {
		properties, err := wire.AppendProperty(nil, wire.PropKeys, "key-"+body)
		if err != nil {
			t.Fatal(err)
		}
		p := wire.BatchPart{Body: []byte(body), Properties: properties}
		if m.Body, err = p.Append(m.Body); err != nil {
			t.Fatal(err)
		}
	}
	if compressed {
		z, err := wire.NewDeflater(wire.CompressionZlib)
		if err != nil {
			t.Fatal(err)
		}
		if m.Body, err = z.Append(nil, m.Body); err != nil {
			t.Fatal(err)
		}
		m.SysFlag |= wire.CompressionZlib.SysFlag()
	}
	m.BodyCRC = wire.BodyCRC(m.Body)
	text, err := m.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A stored batch is unwrapped as Java's client does; a part that fails comes again alone, and the batch's offset stays
// committed until its last part is settled.
func TestStoredBatchIsUnwrapped(t *testing.T) {
	for _, compressed := range []bool{false, true} {
		t.Run(fmt.Sprintf("compressed %t", compressed), func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				r := newRig(t, 1, nil)
				q := clustertest.Queue(topicName, 0)
				var open atomic.Bool
				r.handler.Do = func(_ context.Context, rec clustertest.Record) clustertest.Answer {
					switch {
					case rec.Body == "b" && rec.Attempt == 1:
						return clustertest.Answer{Verdict: retryOnce}
					case rec.Body == "c":
						return clustertest.Answer{Verdict: frame.Verdict{Kind: frame.VerdictReject, Class: "schema"}}
					case rec.Body == "d" && !open.Load():
						nap(10 * time.Second)
					}
					return clustertest.Answer{}
				}
				r.cluster.Fill(q, 5) // the batch takes the first four offsets
				stored := r.cluster.Messages(topicName)
				whole := batched(t, &stored[0], []string{"a", "b", "c", "d"}, compressed)
				last, err := stored[4].Append(nil)
				if err != nil {
					t.Fatal(err)
				}
				r.cluster.Garble = func(at sdk.Queue, body []byte) []byte {
					if at != q {
						return body
					}
					return slices.Concat(whole, last)
				}
				r.cluster.SetCommitted(group, q, 0)
				e := r.start(r.config("c1"))
				wait(5 * time.Second)
				if got := r.cluster.Committed(group, q); got != 0 {
					t.Errorf("committed %d while a part of the batch is at work", got)
				}
				open.Store(true)
				wait(20 * time.Second)
				seen := map[string][]string{}
				for _, rec := range r.handler.Handled() {
					seen[rec.Body] = append(seen[rec.Body], fmt.Sprintf("%s %d %s %d", rec.Topic, rec.Attempt, rec.Keys, rec.Offset))
				}
				want := map[string][]string{"a": {"T 1 key-a 0"}, "b": {"T 1 key-b 1", "T 2 key-b 0"}, "c": {"T 1 key-c 2"}, "d": {"T 1 key-d 3"}, "4": {"T 1 " + q.String() + "-4 4"}}
				if fmt.Sprint(seen) != fmt.Sprint(want) {
					t.Errorf("delivered %v, want %v", seen, want)
				}
				ids := map[string]bool{}
				for _, rec := range r.handler.Handled() {
					ids[rec.ID] = true
				}
				if len(ids) != 5 {
					t.Errorf("identities %v, want one for each message over its attempts", ids)
				}
				if dead := r.cluster.Messages(wire.DLQTopic(group)); len(dead) != 1 || string(dead[0].Body) != "c" {
					t.Errorf("dead letters %+v", dead)
				}
				r.committedAll(1)
				r.stop(e)
			})
		})
	}
}

// A group whose offset points inside of a batch gets the rest of the batch.
func TestPullThatBeginsInsideOfABatch(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		q := clustertest.Queue(topicName, 0)
		r.cluster.Fill(q, 4)
		stored := r.cluster.Messages(topicName)
		whole := batched(t, &stored[0], []string{"a", "b", "c", "d"}, false)
		r.cluster.Garble = func(at sdk.Queue, body []byte) []byte {
			if at != q {
				return body
			}
			return whole
		}
		r.cluster.SetCommitted(group, q, 2)
		e := r.start(r.config("c1"))
		wait(3 * time.Second)
		if got := r.bodies(); len(got) != 2 || len(r.handler.Handled()) != 2 {
			t.Errorf("delivered %+v, want c and d", r.handler.Handled())
		}
		r.committedAll(1)
		r.stop(e)
	})
}

// In a retry topic a whole batch is one message: what stands behind it is not taken for its parts.
func TestBatchInARetryTopicHidesNothing(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		retry := wire.RetryTopic(group)
		r.cluster.CreateTopic(retry, 1)
		q := clustertest.Queue(retry, 0)
		r.cluster.Fill(q, 3)
		stored := r.cluster.Messages(retry)
		whole := batched(t, &stored[0], []string{"a", "b", "c", "d"}, false)
		r.cluster.Garble = func(at sdk.Queue, body []byte) []byte {
			if at != q {
				return body
			}
			var m wire.Message
			n, err := m.Decode(body)
			if err != nil || m.QueueOffset != 0 {
				return body
			}
			return slices.Concat(whole, body[n:])
		}
		e := r.start(r.config("c1", func(s *runtime.StreamConfig) { s.Pull.Messages = 1 }))
		wait(3 * time.Second)
		if got := len(r.handler.Handled()); got != 6 {
			t.Errorf("%d delivered, want 4 parts and 2 messages", got)
		}
		if got := r.cluster.Committed(group, q); got != 3 {
			t.Errorf("committed %d of 3", got)
		}
		r.stop(e)
	})
}
