package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker/faultfs"
	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/logtest"
)

// files lists the files of a store by the end of their names.
func files(t *testing.T, fs vfs.FS, suffix string) (found []string) {
	t.Helper()
	names, err := fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, suffix) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

func content(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(fs.PathJoin("data", name))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	_, err = b.ReadFrom(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestSegments_areALogOfMessages: with FlushAsync the files hold stored messages behind each other, each where its log offset and
// the file's name say, and nothing else holds them.
func TestSegments_areALogOfMessages(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	s := open(t, store.Options{FS: fs, Flush: store.FlushAsync, SegmentBytes: 10_000})
	var all []store.Position
	for i := range 50 {
		all = append(all, put(t, s, fmt.Sprint("T", i%3), record(t, "T", fmt.Sprint("body-", i, strings.Repeat("x", 900)), 0))...)
	}
	names := files(t, fs, ".messages")
	if len(names) != 5 {
		t.Errorf("50 messages of 1 KB are in %v", names)
	}
	found := map[int64]bool{}
	for _, name := range names {
		var at int64
		if _, err := fmt.Sscanf(name, "%020d.messages", &at); err != nil {
			t.Fatal(err)
		}
		for rest := content(t, fs, name); len(rest) > 0; {
			size := int(rest[0])<<24 | int(rest[1])<<16 | int(rest[2])<<8 | int(rest[3])
			if m := decode(t, rest[:size]); m.LogOffset != at {
				t.Fatalf("%s has a message of log offset %d at %d", name, m.LogOffset, at)
			}
			found[at] = true
			at, rest = at+int64(size), rest[size:]
		}
	}
	for i, p := range all {
		if !found[p.LogOffset] {
			t.Errorf("message %d is in no file", i)
		}
	}
	for _, name := range files(t, fs, ".log") {
		if bytes.Contains(content(t, fs, name), []byte("body-")) {
			t.Errorf("%s has messages too", name)
		}
	}
	if r := read(t, s, "T1", 3, store.Limits{Messages: 32, Bytes: 1 << 20}, nil); len(r.Messages) != 14 {
		t.Errorf("a read over all files: %d messages", len(r.Messages))
	}
}

// TestSegments_readsMeetTheirLimits whatever of a queue lies behind each other in how many files.
func TestSegments_readsMeetTheirLimits(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	s := open(t, store.Options{Flush: store.FlushAsync, SegmentBytes: 3000})
	var bodies []string
	for i := range 200 {
		records := make([]store.Record, 1+random.IntN(4))
		for j := range records {
			body := fmt.Sprint(i, ".", j, strings.Repeat("y", random.IntN(600)))
			records[j] = record(t, "T", body, int32(len(bodies)%3))
			if random.IntN(6) == 0 {
				records[j].Due = s.Now() + 1e6 // stays with its key
			}
			bodies = append(bodies, body)
		}
		put(t, s, "T", records...)
		put(t, s, "Between", record(t, "T", strings.Repeat("z", random.IntN(300)), 0))
	}
	for range 500 {
		from, l := random.IntN(len(bodies)), store.Limits{Messages: 1 + random.IntN(40), Bytes: random.IntN(20_000), Buffer: make([]byte, random.IntN(9000))}
		even := func(raw []byte) bool { m := decode(t, raw); return len(m.Body)%2 == 0 }
		match := store.Match{}
		if random.IntN(2) == 0 {
			match.Message = even
		}
		r, err := s.Read("T", 0, int64(from), l, match)
		if err != nil {
			t.Fatal(err)
		}
		want, size := from, 0
		for _, raw := range r.Messages {
			for match.Message != nil && len(bodies[want])%2 != 0 {
				want++
			}
			m := decode(t, raw)
			if string(m.Body) != bodies[want] || m.QueueOffset != int64(want) {
				t.Fatalf("read %d: %.20q in the place of %.20q", from, m.Body, bodies[want])
			}
			want, size = want+1, size+len(raw)
		}
		if size != r.TotalSize || len(r.Messages) > l.Messages || len(r.Messages) > 1 && size > l.Bytes {
			t.Fatalf("%d messages of %d bytes, said to be %d, for %+v", len(r.Messages), size, r.TotalSize, l)
		}
		if match.Message == nil && r.Next != int64(want) {
			t.Fatalf("next is %d, want %d", r.Next, want)
		}
	}
}

// TestSegments_goWithTheirMessages, and not before: those that wait, and what expires only later, keep theirs.
func TestSegments_goWithTheirMessages(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		fs := vfs.NewCrashableMem()
		o := store.Options{FS: fs, Flush: store.FlushAsync, FlushInterval: 24 * time.Hour, SegmentBytes: 10_000, RetainAge: time.Hour}
		s := open(t, o)
		waits := record(t, "Timer", "waits", 0)
		waits.Due = s.Now() + (5 * time.Hour).Milliseconds()
		kept := put(t, s, "Timer", waits, record(t, "Timer", "behind it", 0))
		for range 20 {
			put(t, s, "Old", record(t, "T", strings.Repeat("o", 1000), 0))
		}
		<-time.After(50 * time.Minute)
		for range 20 {
			put(t, s, "Young", record(t, "T", strings.Repeat("y", 1000), 0))
			put(t, s, "Deleted", record(t, "T", strings.Repeat("d", 1000), 0))
		}
		before := files(t, fs, ".messages")
		<-time.After(20 * time.Minute)
		after := files(t, fs, ".messages")
		if len(after) >= len(before) || after[0] != before[0] || slices.Contains(after, before[1]) {
			t.Errorf("of %v are left %v; the first one has a message behind one that waits, the second has old ones alone", before, after)
		}
		// What is there is there after the power was cut, and nothing points to what is not.
		fs = fs.CrashClone(vfs.CrashCloneCfg{})
		o.FS = fs
		s = open(t, o)
		for _, topic := range []string{"Timer", "Old", "Young", "Deleted"} {
			checkDense(t, s, topic, 0)
		}
		if raw, ok := lookup(t, s, kept[1].LogOffset); !ok || string(decode(t, raw).Body) != "behind it" {
			t.Error("what is behind a message that waits is gone")
		}
		if first, next, _ := s.Bounds("Young", 0); next-first != 20 {
			t.Errorf("%d young messages of 20 are left", next-first)
		}
		remove(t, s, "Deleted")
		due, _, err := s.Scheduled(0, 1<<60, 10, 1<<30)
		if err != nil || len(due) != 1 {
			t.Fatalf("scheduled %v, %v", due, err)
		}
		if err := s.Apply(&store.Change{Unschedule: due}); err != nil {
			t.Fatal(err)
		}
		put(t, s, "New", record(t, "T", "n", 0))
		<-time.After(2 * time.Hour)
		if left := files(t, fs, ".messages"); len(left) != 0 {
			t.Errorf("%v are left though everything has expired", left)
		}
		for i := range 3 {
			put(t, s, "New", record(t, "T", "n", 0))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, o)
			checkDense(t, s, "New", 0)
			if left := files(t, fs, ".messages"); len(left) != i+1 {
				t.Errorf("new messages are in %v", left)
			}
		}
	})
}

// TestSegments_ofADeletedTopic go without any limit of age or size.
func TestSegments_ofADeletedTopic(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		fs := vfs.NewMem()
		s := open(t, store.Options{FS: fs, Flush: store.FlushAsync, SegmentBytes: 10_000})
		for range 30 {
			put(t, s, "T", record(t, "T", strings.Repeat("o", 1000), 0))
		}
		put(t, s, "Other", record(t, "T", "stays", 0))
		for range 30 {
			put(t, s, "T", record(t, "T", strings.Repeat("o", 1000), 0))
		}
		remove(t, s, "T")
		<-time.After(2 * time.Minute)
		if left := files(t, fs, ".messages"); len(left) != 1 {
			t.Errorf("%v are left; want the one of the other topic", left)
		}
		checkDense(t, s, "Other", 0)
	})
}

// TestSegments_damaged names the file, to each reader and once in the log; what is elsewhere is read and stored on.
func TestSegments_damaged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func([]byte) []byte{
		"a bit":  func(c []byte) []byte { c[3500] ^= 1; return c },
		"cut":    func(c []byte) []byte { return c[:3500] },
		"empty":  func([]byte) []byte { return nil },
		"zeroed": func(c []byte) []byte { return make([]byte, len(c)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fs := vfs.NewMem()
			o := store.Options{FS: fs, Flush: store.FlushAsync, SegmentBytes: 10_000}
			s := open(t, o)
			var all []store.Position
			for i := range 30 {
				all = append(all, put(t, s, "T", keyed(t, "T", fmt.Sprint(i, strings.Repeat("x", 1000)), fmt.Sprint(i)))...)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			bad := files(t, fs, ".messages")[1]
			rewrite(t, fs, bad, change)
			var log logtest.Log
			o.Logger = slog.New(slog.NewJSONHandler(&log, nil))
			s = open(t, o)
			whole := store.Limits{Messages: 100, Bytes: 1 << 20}
			for range 3 {
				if r, err := s.Read("T", 0, 0, whole, store.Match{}); !errors.Is(err, store.ErrDamaged) || !namesOnce(err, "data/"+bad, bad) {
					t.Errorf("a read over it: %d messages, %v", len(r.Messages), err)
				}
			}
			refused := 0
			for i, p := range all {
				_, found, byID := s.Lookup(p.LogOffset)
				raws, byKey := s.Query("T", fmt.Sprint(i), 0, 1<<60, 1, nil)
				if errors.Is(byID, store.ErrDamaged) && errors.Is(byKey, store.ErrDamaged) {
					refused++
				} else if !found || len(raws) != 1 || byID != nil || byKey != nil {
					t.Errorf("message %d: found %t and %d times, %v, %v", i, found, len(raws), byID, byKey)
				}
			}
			if refused == 0 || refused > 10 {
				t.Errorf("%d messages of the 10 in it are refused", refused)
			}
			if r := read(t, s, "T", 25, whole, nil); len(r.Messages) != 5 {
				t.Errorf("behind it are %d messages of 5", len(r.Messages))
			}
			put(t, s, "T", record(t, "T", "new", 0))
			if told := damages(&log); len(told) != 1 || !strings.Contains(told[0], bad) {
				t.Errorf("the operator is told %d times: %s", len(told), &log)
			}
		})
	}
}

// TestSegments_missing is told when the store is opened.
func TestSegments_missing(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	o := store.Options{Dir: "data", FS: fs, Flush: store.FlushAsync, SegmentBytes: 10_000}
	s := open(t, o)
	for range 30 {
		put(t, s, "T", record(t, "T", strings.Repeat("x", 1000), 0))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	bad := files(t, fs, ".messages")[1]
	if err := fs.Remove("data/" + bad); err != nil {
		t.Fatal(err)
	}
	for _, flush := range []store.Flush{store.FlushAsync, store.FlushSync} {
		o.Flush = flush
		if s, err := store.Open(o); err == nil {
			t.Error("it opens", s.Close())
		} else if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), bad) {
			t.Errorf("opening says %v", err)
		}
	}
}

// TestSegments_underFlushSync take what is much, and what comes right behind; what is little stays with its key, and leaves a hole.
func TestSegments_underFlushSync(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashableMem()
	s := open(t, store.Options{FS: fs})
	stored := 0
	for range 20 {
		for _, size := range []int{1000, 250_000, 3000, 3000} {
			put(t, s, "T", record(t, "T", fmt.Sprint(stored, strings.Repeat("x", size)), 0))
			stored++
		}
	}
	names := files(t, fs, ".messages")
	if len(names) != 1 {
		t.Fatalf("the messages are in %v", names)
	}
	in := content(t, fs, names[0])
	large := bytes.Count(in, bytes.Repeat([]byte("x"), 250_000))
	if all := bytes.Count(in, []byte("x")); large != 20 || all > 20*(250_000+3000)+1000 {
		t.Errorf("%d large messages are in the segment, and %d bytes in all", large, all)
	}
	// What was acknowledged survives the power loss, whichever file has it.
	look := open(t, store.Options{FS: fs.CrashClone(vfs.CrashCloneCfg{})})
	raws, err := look.Messages("T", 0, 0, 0)
	if err != nil || len(raws) != stored {
		t.Fatalf("%d messages of %d: %v", len(raws), stored, err)
	}
	for i, raw := range raws {
		if m := decode(t, raw); !strings.HasPrefix(string(m.Body), fmt.Sprint(i, "x")) {
			t.Fatalf("message %d is %.10q", i, m.Body)
		}
	}
}

// TestSegments_thatNothingIsIn go when the store is opened: the power went before the log said that they were begun.
func TestSegments_thatNothingIsIn(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	s := open(t, store.Options{FS: fs, Flush: store.FlushAsync})
	put(t, s, "T", record(t, "T", "x", 0))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	const stray = "00000000000000009999.messages"
	f, err := fs.Create("data/"+stray, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, store.Options{FS: fs})
	if left := files(t, fs, ".messages"); len(left) != 1 || left[0] == stray {
		t.Errorf("%v are left", left)
	}
	checkDense(t, s, "T", 0)
}

// TestSegments_wayOfFlushChanges reads on what was stored the other way, and says so to older versions.
func TestSegments_wayOfFlushChanges(t *testing.T) {
	t.Parallel()
	fs, stored := vfs.NewMem(), 0
	for i, flush := range []store.Flush{store.FlushSync, store.FlushAsync, store.FlushSync, store.FlushAsync} {
		s := open(t, store.Options{FS: fs, Flush: flush, SegmentBytes: 5000})
		for range 10 {
			put(t, s, "T", record(t, "T", fmt.Sprint(stored, strings.Repeat("x", 1000)), 0))
			stored++
		}
		raws, err := s.Messages("T", 0, 0, 0)
		if err != nil || len(raws) != stored {
			t.Fatalf("%d messages of %d: %v", len(raws), stored, err)
		}
		for i, raw := range raws {
			if m := decode(t, raw); !strings.HasPrefix(string(m.Body), fmt.Sprint(i, "x")) {
				t.Fatalf("message %d is %.10q", i, m.Body)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got, want := formatOf(t, fs), min(i+1, 2); got != byte(want) {
			t.Errorf("after %s it has format %d, want %d", flush, got, want)
		}
	}
}

func formatOf(t *testing.T, fs vfs.FS) byte {
	t.Helper()
	db, err := pebble.Open("data", &pebble.Options{FS: fs, ReadOnly: true, FormatMajorVersion: pebble.FormatValueSeparation, Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	v, closer, err := db.Get([]byte("v"))
	if err != nil {
		t.Fatal(err)
	}
	format := v[3]
	if err := errors.Join(closer.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	return format
}

// TestSegments_thatCouldNotBeSynchronized are written anew: the next synchronization would say that all is on the disk, and what
// the failed one was of is not.
func TestSegments_thatCouldNotBeSynchronized(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		fs := faultfs.New(vfs.NewMem())
		s := open(t, store.Options{FS: fs, Flush: store.FlushAsync})
		put(t, s, "T", record(t, "T", "0", 0))
		_, liftSync := fs.Inject(faultfs.Fault{Op: faultfs.Sync, Suffix: ".messages", Err: syscall.EIO})
		anew, liftCreate := fs.Inject(faultfs.Fault{Op: faultfs.Create, Suffix: ".messages.tmp"})
		defer liftCreate()
		<-time.After(time.Second)
		if err := s.Err(); !errors.Is(err, store.ErrFailed) || !strings.Contains(err.Error(), ".messages") {
			t.Errorf("while it cannot be synchronized: %v", err)
		}
		liftSync()
		<-time.After(time.Minute)
		select {
		case <-anew:
		default:
			t.Error("it was not written anew")
		}
		put(t, s, "T", record(t, "T", "1", 0))
		checkDense(t, s, "T", 0)
	})
}

// TestCrash_segmentsApart loses, with the power, the messages and not the log that points to them, and the other way round.
func TestCrash_segmentsApart(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{".messages", ".log"} {
		fs := vfs.NewCrashableMem()
		s := open(t, store.Options{FS: fs, Flush: store.FlushAsync, FlushInterval: time.Hour})
		for i := range 10 {
			s.Set(store.Value{Table: "t", Key: "n", Value: []byte{byte(i)}})
			put(t, s, "T", record(t, "T", fmt.Sprint(i, strings.Repeat("x", 1000)), 0))
		}
		left := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
		names := files(t, left, lost)
		rewrite(t, left, names[len(names)-1], func(c []byte) []byte { return c[:len(c)/2] })
		look := open(t, store.Options{FS: left})
		first, next, _ := look.Bounds("T", 0)
		if first != 0 || next < 3 || next > 6 {
			t.Errorf("without half of %s there are %d..%d of 10 messages", lost, first, next)
		}
		checkDense(t, look, "T", 0)
		table, err := look.Table("t")
		if err != nil || len(table["n"]) != 1 || int64(table["n"][0]) < next-1 || int64(table["n"][0]) > next {
			t.Errorf("without half of %s the value is %v with %d messages: %v", lost, table["n"], next, err)
		}
	}
}
