package store

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2"

	"github.com/streamd/streamd/internal/bubbletest"
)

func segmented(t *testing.T, n int) *Store {
	t.Helper()
	s := openHere(t, Options{Flush: FlushAsync, SegmentBytes: 1})
	for i := range n {
		if err := s.Apply(message(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestView_beginsAnewWhenMessagesExpire: a read whose keys are from before a segment was removed is done again, with those of now.
// It is no damage.
func TestView_beginsAnewWhenMessagesExpire(t *testing.T) {
	t.Parallel()
	s, tries := segmented(t, 5), 0
	var left []int64
	err := s.view(func(db *pebble.DB) (err error) {
		tries++
		left = nil
		it, err := messages(db, 1, 0, 5)
		if err != nil {
			return err
		}
		defer func() { err = ended(it, err) }()
		if tries == 1 {
			expired := make(chan error, 1)
			s.Expire("T", 0, 3, func(err error) { expired <- err })
			if err := errors.Join(<-expired, s.dropSegments(s.Mark())); err != nil {
				return err
			}
		}
		for ok := it.First(); ok; ok = it.Next() {
			raw, err := s.segments.copy(it.Value())
			if err != nil {
				return err
			}
			left = append(left, int64(order.Uint64(raw[atQueueOffset:])))
		}
		return it.Error()
	})
	if gone := s.segments.gone; len(gone) != 1 || gone[0].first != 0 {
		t.Errorf("segments that lay behind each other are kept in mind as %v", gone)
	}
	if err != nil || tries != 2 || fmt.Sprint(left) != "[3 4]" {
		t.Errorf("after %d tries it read %v: %v", tries, left, err)
	}
}

// TestView_doesNotTryForEver what never ends.
func TestView_doesNotTryForEver(t *testing.T) {
	t.Parallel()
	s, tries := segmented(t, 1), 0
	err := s.view(func(*pebble.DB) error {
		tries++
		return errGone
	})
	if !errors.Is(err, errGone) || tries != 1+viewTries {
		t.Errorf("after %d tries: %v", tries, err)
	}
}

// TestReaders_areNotMoreThanTheirNumber, however many segments are read.
func TestReaders_areNotMoreThanTheirNumber(t *testing.T) {
	t.Parallel()
	const n = maxReaders + 50
	s := segmented(t, n)
	for range 2 {
		raws, err := s.Messages("T", 0, 0, 0)
		if err != nil || len(raws) != n {
			t.Fatalf("%d messages: %v", len(raws), err)
		}
		for i, raw := range raws {
			if !strings.HasSuffix(string(raw), fmt.Sprint(i)) {
				t.Fatalf("message %d is %q", i, raw)
			}
		}
	}
	s.segments.mu.Lock()
	defer s.segments.mu.Unlock()
	if open := len(s.segments.readers); open > maxReaders || open < maxReaders/2 {
		t.Errorf("%d segments are open", open)
	}
}

// TestLeaveSegment_waitsForWhatIsOnItsWay: what was given a place in the last segment is still to be written there.
func TestLeaveSegment_waitsForWhatIsOnItsWay(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, leavesSegment)
}

func leavesSegment(t *testing.T) {
	t.Helper()
	s := openHere(t, Options{Flush: FlushAsync})
	if err := s.Apply(message("x")); err != nil {
		t.Fatal(err)
	}
	end, err := s.storedEnd()
	if err != nil {
		t.Fatal(err)
	}
	gathers := newGroup(s.handle.db, 0)
	gathers.log = []byte{}
	synctest.Wait() // The loop, which has just stored something, would take the group before it is told to.
	s.mu.Lock()
	s.groups = append(s.groups, gathers)
	s.mu.Unlock()
	if s.leaveSegment(span{0, end}) {
		t.Error("it was left though a group gathers that goes there")
	}
	s.mu.Lock()
	s.groups = nil
	s.mu.Unlock()
	if err := gathers.batch.Close(); err != nil {
		t.Fatal(err)
	}
	if s.leaveSegment(span{0, end - 1}) {
		t.Error("it was left though a message came")
	}
	if !s.leaveSegment(span{0, end}) {
		t.Error("it was not left when the message was stored")
	}
	if err := s.Apply(message("y")); err != nil {
		t.Fatal(err)
	}
	if all := s.segments.spans(math.MaxInt64); len(all) != 2 || all[1].first != end {
		t.Errorf("there are segments %v", all)
	}
}
