package serve

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/streamd/streamd/internal/border"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// linger is how long verdicts wait for others while the lane is busy. An idle worker reports at once.
const linger = 200 * time.Microsecond

const (
	// frameFull is from how many bytes on a report goes on in another frame. A frame may have border.MaxMessage, and one that has
	// more ends the lane: what it answers would come again and again.
	frameFull = 8 << 20
	// mostOutputs is what the outputs of one message may take: they are in one frame with its verdict.
	mostOutputs = border.MaxMessage - 1<<20
	// columns is what one output or verdict takes of a frame beside its text and payload, at most.
	columns = 64
)

// classOutput is the class of a message whose outputs nobody can store, as the host names it.
const classOutput = "output"

// answer is a verdict that is more than a plain ack: one with outputs, a failure, or a record given back.
type answer struct {
	batch   *batch
	verdict frame.Verdict
	outputs []sdk.Output
	size    int // bytes of the outputs that the host's credit counts
}

// weight is what the answer takes of a frame, at most.
func (a *answer) weight() int {
	n := columns + len(a.verdict.Class) + len(a.verdict.Text) + a.size
	for i := range a.outputs {
		o := &a.outputs[i]
		n += columns + len(o.Topic) + len(o.Tag) + len(o.ShardingKey)
	}
	return n
}

// settle takes the author's word for one record, and tells whether it is an ack. It takes no lock for a plain one.
func (l *lane) settle(t *task, err error) bool {
	m := &t.batch.messages[t.index]
	outputs := m.Outputs()
	if err == nil && len(outputs) == 0 {
		t.batch.ack(t.index)
		return true
	}
	a := answer{batch: t.batch}
	if err == nil {
		a.outputs, a.size = outputs, outputSize(outputs)
		if n := a.weight(); n > mostOutputs {
			err = sdk.WithClass(classOutput, fmt.Errorf("the message's %d outputs take %d bytes, and they may take %d: emit fewer or smaller ones", len(outputs), n, mostOutputs))
			a.outputs, a.size = nil, 0
		}
	}
	v := l.verdictOf(t, err)
	a.verdict = frame.Verdict{Index: uint32(t.index), Delay: v.Delay, Class: v.Class, Text: v.Text}
	switch v.Kind {
	case sdk.Acked:
		a.verdict.Kind = frame.VerdictAck
	case sdk.Rejected:
		a.verdict.Kind = frame.VerdictReject
	default:
		a.verdict.Kind = frame.VerdictRetry
	}
	l.answer(a)
	return v.Kind == sdk.Acked
}

// verdictOf reads the author's error. That runs code of the author's, as an Error method on a nil pointer that was returned as
// an error: when it panics, the handler has.
func (l *lane) verdictOf(t *task, err error) sdk.Verdict {
	read := func() (v sdk.Verdict, panicked error) {
		defer l.recovered(t, &panicked)
		return sdk.VerdictOf(err), nil
	}
	v, panicked := read()
	if panicked != nil {
		return sdk.VerdictOf(panicked)
	}
	return v
}

// giveBack answers records that the author has not seen.
func (l *lane) giveBack(tasks ...*task) {
	l.answersMu.Lock()
	for _, t := range tasks {
		l.answers = append(l.answers, answer{batch: t.batch, verdict: frame.Verdict{Index: uint32(t.index), Kind: frame.VerdictUntouched}})
	}
	l.answersMu.Unlock()
}

func (l *lane) answer(a answer) {
	l.answersMu.Lock()
	l.answers = append(l.answers, a)
	l.answersMu.Unlock()
}

// outputSize is what outputs take of the payload: the host counts the same when it gives credit back.
func outputSize(outputs []sdk.Output) int {
	n := 0
	for i := range outputs {
		o := &outputs[i]
		n += len(o.Body) + max(0, len(o.Keys)-1)
		for _, k := range o.Keys {
			n += len(k)
		}
		for k, v := range o.Properties {
			n += len(k) + len(v) + 2
		}
	}
	return n
}

// note says that there is something to report. A worker that notes it looks for more work next, and reports itself when
// there is none: most batches end so, and need not wake the reporter.
func (l *lane) note() {
	if !l.dirty.Load() {
		l.dirty.Store(true)
	}
}

// remind has the reporter report what was noted within the linger time: whoever noted it may be busy for long.
func (l *lane) remind() {
	if l.dirty.Load() && !l.reminded.Load() && l.reminded.CompareAndSwap(false, true) {
		kick(l.report)
	}
}

// touch is both, for those who are no workers.
func (l *lane) touch() {
	l.note()
	l.remind()
}

// flush reports everything that is answered: one Results frame for each batch with news, then credits. Whoever calls it
// does the sending; a blocked send holds back later reports only.
func (l *lane) flush() {
	l.sendMu.Lock()
	defer l.sendMu.Unlock()
	l.dirty.Store(false)
	l.collectAnswers()
	l.tableMu.Lock()
	l.scan = append(l.scan[:0], l.table...)
	l.tableMu.Unlock()
	finished, complete := 0, 0
	for _, b := range l.scan {
		finished += l.reportBatch(b)
		if b.open == 0 {
			complete++
		}
	}
	clear(l.scan)
	if complete > 0 {
		l.tableMu.Lock()
		l.table = slices.DeleteFunc(l.table, func(b *batch) bool { return b.open == 0 })
		l.tableMu.Unlock()
	}
	l.grant(finished)
	if l.outstanding.Add(int64(-finished)) == 0 && l.draining.Load() && !l.drained {
		l.drained = true
		l.send(&pluginv1.PluginFrame{F: &pluginv1.PluginFrame_Drained{Drained: &pluginv1.Drained{}}})
		l.finish(nil)
	}
}

// collectAnswers moves news from the workers to the reporting side: answers whose outputs the host has room for. Outputs that do not fit wait, and with them their verdict, but nothing else does.
func (l *lane) collectAnswers() {
	l.answersMu.Lock()
	l.pending = append(l.pending, l.answers...)
	clear(l.answers)
	l.answers = l.answers[:0]
	l.answersMu.Unlock()
	held := l.pending[:0]
	blocked := false
	for _, a := range l.pending {
		if len(a.outputs) > 0 {
			// Any credit that is left lets one message pass, so that outputs larger than the whole credit do too.
			if blocked = blocked || l.outputCredit.Load() <= 0; blocked {
				held = append(held, a)
				continue
			}
			l.outputCredit.Add(int64(-a.size))
		}
		l.ready[a.batch] = append(l.ready[a.batch], a)
	}
	clear(l.pending[len(held):])
	l.pending = held
}

// reportBatch sends the news of one batch, in several frames when they are many bytes, and returns how many records they
// answer.
func (l *lane) reportBatch(b *batch) int {
	l.beginResults(b)
	r := &l.results
	n, size := l.newAcks(b), 0
	for i := range l.ready[b] {
		a := &l.ready[b][i]
		weight := a.weight()
		if size > 0 && size+weight > frameFull {
			l.sendResults()
			l.beginResults(b)
			size = 0
		}
		size += weight
		n++
		if a.verdict.Kind == frame.VerdictAck {
			r.AckRuns = append(r.AckRuns, a.verdict.Index, 1)
			l.addOutputs(a)
		} else {
			r.Verdicts = append(r.Verdicts, a.verdict)
		}
	}
	delete(l.ready, b)
	if n == 0 {
		return 0
	}
	b.open -= n
	l.sendResults()
	return n
}

func (l *lane) beginResults(b *batch) {
	r := &l.results
	*r = frame.Results{
		Seq: b.Seq, AckRuns: r.AckRuns[:0], Verdicts: r.Verdicts[:0], Cause: r.Cause[:0],
		OutputDelay: r.OutputDelay[:0], OutputShardingKey: r.OutputShardingKey[:0],
	}
	l.outputs.Reset()
}

// sendResults sends what is gathered. Columns that no output uses stay out.
func (l *lane) sendResults() {
	r := &l.results
	r.Outputs = *l.outputs.Records()
	if !slices.ContainsFunc(r.OutputDelay, func(d time.Duration) bool { return d > 0 }) {
		r.OutputDelay = r.OutputDelay[:0]
	}
	if !slices.ContainsFunc(r.OutputShardingKey, func(key string) bool { return key != "" }) {
		r.OutputShardingKey = r.OutputShardingKey[:0]
	}
	e := frame.EncodeResults(r)
	l.send(&e)
}

// newAcks turns bits that are new into runs.
func (l *lane) newAcks(b *batch) (n int) {
	run := [2]uint32{}
	for w := range b.acked {
		now := b.acked[w].Load()
		fresh := now &^ b.reported[w]
		if fresh == 0 {
			continue
		}
		b.reported[w] = now
		if fresh == ^uint64(0) { // the common case: a whole word
			n += 64
			run = l.extend(run, uint32(w*64), 64)
			continue
		}
		for i := range 64 {
			if fresh>>i&1 == 1 {
				n++
				run = l.extend(run, uint32(w*64+i), 1)
			}
		}
	}
	if run[1] > 0 {
		l.results.AckRuns = append(l.results.AckRuns, run[0], run[1])
	}
	return n
}

// extend adds records to the current run of acks, or closes it and begins another.
func (l *lane) extend(run [2]uint32, start, count uint32) [2]uint32 {
	switch {
	case run[1] == 0:
		return [2]uint32{start, count}
	case run[0]+run[1] == start:
		return [2]uint32{run[0], run[1] + count}
	default:
		l.results.AckRuns = append(l.results.AckRuns, run[0], run[1])
		return [2]uint32{start, count}
	}
}

func (l *lane) addOutputs(a *answer) {
	r := &l.results
	for i := range a.outputs {
		o := &a.outputs[i]
		l.outputs.Append(&frame.Record{
			Topic: o.Topic, Tag: o.Tag, Keys: strings.Join(o.Keys, " "), Properties: l.propertyText(o.Properties), Body: o.Body,
		})
		r.Cause = append(r.Cause, a.verdict.Index)
		r.OutputDelay = append(r.OutputDelay, o.Delay)
		r.OutputShardingKey = append(r.OutputShardingKey, strings.ToValidUTF8(o.ShardingKey, "\uFFFD"))
	}
}

// propertyText writes properties in RocketMQ's text form, sorted, so that equal outputs are equal bytes.
func (l *lane) propertyText(properties map[string]string) []byte {
	names := l.names[:0]
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	text := l.text[:0]
	for _, name := range names {
		text = append(append(append(append(text, name...), '\x01'), properties[name]...), '\x02')
	}
	l.names, l.text = names, text
	return text
}

// grant gives credits back in quarters of the window, so that a batch of one costs no frame of its own. What is held back
// is less than the window, so the host can always send.
func (l *lane) grant(finished int) {
	l.ungranted += finished
	if l.ungranted < max(1, l.credits/4) {
		return
	}
	l.send(border.Raw(frame.AppendPluginCredit(nil, uint64(l.ungranted))))
	l.ungranted = 0
}

// send writes one frame; sendMu is held. After an error nothing is sent any more: the lane is over.
func (l *lane) send(message any) {
	if l.sendErr != nil {
		return
	}
	if err := l.frames.SendMsg(message); err != nil {
		l.sendErr = err
		l.finish(err)
	}
}

// sendStarted tells the host that a record runs long; sendMu is held.
func (l *lane) sendStarted(t *task) {
	l.send(border.Raw(frame.AppendStarted(nil, frame.Ref{Seq: t.batch.Seq, Index: uint32(t.index)})))
}
