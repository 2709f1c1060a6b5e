package broker

import (
	"errors"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker/store"
)

func memoryStorage(t *testing.T) *storage {
	t.Helper()
	s := &storage{options: store.Options{Dir: "memory", FS: vfs.NewMem(), Flush: store.FlushAsync}}
	if _, err := s.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func wait(t *testing.T, s *storage, due int64) {
	t.Helper()
	host := netip.MustParseAddrPort("10.0.0.1:10911")
	b := &Broker{storage: s, host: host}
	r, err := b.record(&draft{topic: "Timer", body: []byte("x"), bornHost: host}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Due = due
	if err := s.submit(&store.Change{Appends: []store.Append{{Topic: "Timer", Records: []store.Record{r}}}}, func(error) {}); err != nil {
		t.Fatal(err)
	}
	if err := s.settle(s.mark()); err != nil {
		t.Fatal(err)
	}
}

// TestSchedule_missesNothingThatComesMeanwhile has a message be added while others are delivered that are due after it.
func TestSchedule_missesNothingThatComesMeanwhile(t *testing.T) {
	t.Parallel()
	st := memoryStorage(t)
	now := st.now()
	wait(t, st, now-100)
	var delivered []int64
	var s *schedule
	s = newSchedule(st, func(due []store.Scheduled) error {
		for _, e := range due {
			delivered = append(delivered, e.Due-now)
		}
		if len(delivered) == 1 {
			wait(t, st, now-150) // Its time was over when it was stored.
			s.arm(now - 150)
		}
		return st.edit(func(o *store.Store, done func(error)) {
			if err := o.Submit(&store.Change{Unschedule: due}, done); err != nil {
				done(err)
			}
		})
	}, slog.New(slog.DiscardHandler))
	s.from = now - 1000 // It was looked at a while ago.
	for pause := time.Duration(0); pause == 0; {
		pause = s.once()
	}
	if len(delivered) != 2 || delivered[1] != -150 {
		t.Errorf("delivered %v, want -100 and -150", delivered)
	}
}

// TestSchedule_waitsForWhatMayBeStored has a delivery be refused that is stored later all the same, as by a disk that takes
// nothing for a while.
func TestSchedule_waitsForWhatMayBeStored(t *testing.T) {
	t.Parallel()
	st := memoryStorage(t)
	wait(t, st, st.now())
	times := 0
	s := newSchedule(st, func(due []store.Scheduled) error {
		times++
		if err := st.submit(&store.Change{Unschedule: due}, func(error) {}); err != nil {
			return err
		}
		return errors.New("told before it was stored")
	}, slog.New(slog.DiscardHandler))
	if pause := s.once(); pause != deliverPause {
		t.Errorf("after a failure it goes on in %v, want %v", pause, deliverPause)
	}
	if pause := s.once(); times != 1 || pause != idleLook {
		t.Errorf("delivered %d times, and goes on in %v, want once and %v", times, pause, idleLook)
	}
}

// TestTopics_forgetWhatWasNotStored after the store failed: a topic that is not stored would be gone after a restart.
func TestTopics_forgetWhatWasNotStored(t *testing.T) {
	t.Parallel()
	topics := newTopicTable(Config{Name: "b", Cluster: "c"})
	topics.save, topics.saveVersion = func(string, []byte) {}, func(int64) {}
	system := len(topics.names())
	topics.put(newTopic("Stored", 1, permUsual))
	stored := map[string][]byte{"Stored": encoded(newTopic("Stored", 1, permUsual))}
	topics.put(newTopic("Lost", 1, permUsual))
	if err := topics.load(stored, 1); err != nil {
		t.Fatal(err)
	}
	if _, ok := topics.get("Lost"); ok || len(topics.names()) != system+1 {
		t.Errorf("after the store was read again there are %v", topics.names())
	}
}
