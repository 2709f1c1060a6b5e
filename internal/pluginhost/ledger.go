package pluginhost

import (
	"fmt"
	"time"

	"github.com/streamd/streamd/internal/frame"
)

// ledger knows what is out on one lane: who was sent, who was answered, what may still be sent. It is where answers are
// fenced: each record is answered once, and only if it was sent. Pure; its owner locks it.
type ledger struct {
	credits int // records that may be sent
	most    int // records that may be out at once; 0 = what the plugin grants
	next    uint64
	out     map[uint64]*sent
	records int // unanswered

	lastAnswer time.Time // or when the lane last went from idle to busy
	started    map[frame.Ref]time.Time
	duplicates uint64
}

// sent is one batch of which records are unanswered.
type sent struct {
	count    int
	left     int
	answered []uint64 // a bit a record
	at       time.Time
}

func newLedger() *ledger {
	return &ledger{out: map[uint64]*sent{}, started: map[frame.Ref]time.Time{}}
}

func (s *sent) has(i uint32) bool { return s.answered[i/64]&(1<<(i%64)) != 0 }

// mark answers record i and tells whether it was the first answer.
func (s *sent) mark(i uint32) bool {
	if s.has(i) {
		return false
	}
	s.answered[i/64] |= 1 << (i % 64)
	s.left--
	return true
}

// send takes credits for a batch. Its seq must be larger than all before.
func (l *ledger) send(seq uint64, n int, now time.Time) error {
	switch {
	case n == 0 || n > frame.MaxBatchRecords:
		return fmt.Errorf("sending batch %d: %d records, want 1 to %d", seq, n, frame.MaxBatchRecords)
	case n > l.credits:
		return frame.ErrNoCredit
	case seq < l.next:
		return fmt.Errorf("sending batch %d: the lane is at %d already", seq, l.next)
	}
	if l.records == 0 {
		l.lastAnswer = now
	}
	l.credits -= n
	l.records += n
	l.next = seq + 1
	l.out[seq] = &sent{count: n, left: n, answered: make([]uint64, (n+63)/64), at: now}
	return nil
}

// grant adds what the plugin gives, and returns what of it counts.
func (l *ledger) grant(n uint64) int {
	room := maxCredits
	if l.most > 0 {
		room = l.most
	}
	room -= l.credits + l.records
	add := max(0, min(room, int(min(n, maxCredits))))
	l.credits += add
	return add
}

// maxCredits bounds what a plugin can grant: more than any engine sends.
const maxCredits = 1 << 20

// violation is an answer that no honest plugin gives.
type violation struct{ text string }

func (v *violation) Error() string { return v.text }

func violated(format string, args ...any) error {
	return &violation{fmt.Sprintf(format, args...)}
}

// answer takes the results of a plugin. It removes what was answered before (counted), and refuses what cannot be: a batch
// that was never sent, a record outside its batch, an output of a record that is not acked with it. It returns false when
// nothing is left.
func (l *ledger) answer(r *frame.Results, now time.Time) (bool, error) {
	if r.Seq >= l.next {
		return false, violated("it answered batch %d, which was never sent", r.Seq)
	}
	s, ok := l.out[r.Seq]
	if !ok { // all its records are answered
		l.duplicates += uint64(len(r.Verdicts))
		for i := 1; i < len(r.AckRuns); i += 2 {
			l.duplicates += uint64(r.AckRuns[i])
		}
		return false, nil
	}
	if err := r.Check(s.count); err != nil {
		return false, violated("its results for batch %d are impossible: %v", r.Seq, err)
	}
	before := s.left
	if err := l.take(s, r); err != nil {
		return false, err
	}
	fresh := before - s.left
	l.records -= fresh
	if s.left == 0 {
		delete(l.out, r.Seq)
	}
	if fresh > 0 {
		l.lastAnswer = now
	}
	return fresh > 0, nil
}

// take marks the records of r in s, and drops from r what is a second answer.
func (l *ledger) take(s *sent, r *frame.Results) error {
	fresh := make([]uint64, len(s.answered)) // records that this frame answers first
	runs, clean := r.AckRuns, true
	for i := 0; i < len(runs); i += 2 {
		for at := runs[i]; at < runs[i]+runs[i+1]; at++ {
			if !s.mark(at) {
				clean = false
				l.duplicates++
				continue
			}
			fresh[at/64] |= 1 << (at % 64)
			l.forget(frame.Ref{Seq: r.Seq, Index: at})
		}
	}
	if !clean {
		r.AckRuns = runsOf(fresh)
	}
	verdicts := r.Verdicts[:0]
	for _, v := range r.Verdicts {
		if !s.mark(v.Index) {
			l.duplicates++
			continue
		}
		fresh[v.Index/64] |= 1 << (v.Index % 64)
		l.forget(frame.Ref{Seq: r.Seq, Index: v.Index})
		verdicts = append(verdicts, v)
	}
	r.Verdicts = verdicts
	return dropOutputs(s, r, fresh)
}

func (l *ledger) forget(ref frame.Ref) {
	if len(l.started) > 0 {
		delete(l.started, ref)
	}
}

// runsOf writes a bit set as start, count, ...
func runsOf(bits []uint64) []uint32 {
	var runs []uint32
	for i := range uint32(len(bits) * 64) {
		if bits[i/64]&(1<<(i%64)) == 0 {
			continue
		}
		if n := len(runs); n > 0 && runs[n-2]+runs[n-1] == i {
			runs[n-1]++
		} else {
			runs = append(runs, i, 1)
		}
	}
	return runs
}

// dropOutputs keeps the outputs of records that this frame answers first. An output whose record is still unanswered is a
// violation: it could be produced without its cause ever being settled.
func dropOutputs(s *sent, r *frame.Results, fresh []uint64) error {
	drop := false
	for i, cause := range r.Cause {
		if fresh[cause/64]&(1<<(cause%64)) != 0 {
			continue
		}
		if !s.has(cause) {
			return violated("output %d of batch %d belongs to record %d, which is not answered in the same frame", i, r.Seq, cause)
		}
		drop = true
	}
	if !drop {
		return nil
	}
	kept := frame.Builder{}
	var causes []uint32
	delays, keys := r.OutputDelay[:0], r.OutputShardingKey[:0]
	for i, cause := range r.Cause {
		if fresh[cause/64]&(1<<(cause%64)) == 0 {
			continue
		}
		kept.AppendRange(&r.Outputs, i, i+1)
		causes = append(causes, cause)
		if len(r.OutputDelay) > 0 {
			delays = append(delays, r.OutputDelay[i])
		}
		if len(r.OutputShardingKey) > 0 {
			keys = append(keys, r.OutputShardingKey[i])
		}
	}
	r.Outputs, r.Cause, r.OutputDelay, r.OutputShardingKey = *kept.Records(), causes, delays, keys
	return nil
}

// start notes that a record runs for long. A record that was answered in the meantime is ignored.
func (l *ledger) start(ref frame.Ref, at time.Time) (bool, error) {
	if ref.Seq >= l.next {
		return false, violated("it started record %d of batch %d, which was never sent", ref.Index, ref.Seq)
	}
	s, ok := l.out[ref.Seq]
	if !ok {
		return false, nil
	}
	if int64(ref.Index) >= int64(s.count) {
		return false, violated("it started record %d of batch %d, which has %d", ref.Index, ref.Seq, s.count)
	}
	if s.has(ref.Index) {
		return false, nil
	}
	if _, known := l.started[ref]; known { // said again: it runs since then all the same
		return false, nil
	}
	l.started[ref] = at
	return true, nil
}

// overdue tells whether records are out without a sign for longer than the limit: nothing at all was answered, or a record
// that was reported as running still runs.
func (l *ledger) overdue(now time.Time, limit time.Duration) (ref frame.Ref, since time.Time, late bool) {
	for r, at := range l.started {
		if now.Sub(at) > limit && (!late || at.Before(since)) {
			ref, since, late = r, at, true
		}
	}
	if late || l.records == 0 || now.Sub(l.lastAnswer) <= limit {
		return ref, since, late
	}
	seq, found := uint64(0), false
	for s := range l.out {
		if !found || s < seq {
			seq, found = s, true
		}
	}
	index := uint32(0)
	for l.out[seq].has(index) {
		index++
	}
	return frame.Ref{Seq: seq, Index: index}, l.lastAnswer, true
}

// longRunners returns the unanswered records that were reported as running and run for longer than the limit.
func (l *ledger) longRunners(now time.Time, limit time.Duration) []frame.Ref {
	var refs []frame.Ref
	for ref, at := range l.started {
		if now.Sub(at) > limit {
			refs = append(refs, ref)
		}
	}
	return refs
}

// suspects maps what the shared page says to records that are out. When the page cannot tell (it overflowed, or the plugin
// does not write it) every unanswered record is a suspect.
func (l *ledger) suspects(runs []frame.Run, complete bool) []frame.Ref {
	var refs []frame.Ref
	if !complete {
		for seq, s := range l.out {
			refs = appendUnanswered(refs, seq, s, 0, uint32(s.count))
		}
		return refs
	}
	for _, run := range runs {
		for seq, s := range l.out {
			if uint32(seq) == run.Seq {
				refs = appendUnanswered(refs, seq, s, run.Index, min(run.Index+run.Count, uint32(s.count)))
			}
		}
	}
	return refs
}

func appendUnanswered(refs []frame.Ref, seq uint64, s *sent, from, to uint32) []frame.Ref {
	for i := from; i < to; i++ {
		if !s.has(i) {
			refs = append(refs, frame.Ref{Seq: seq, Index: i})
		}
	}
	return refs
}
