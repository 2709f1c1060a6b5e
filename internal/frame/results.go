package frame

import (
	"fmt"
	"math"
	"time"
)

// Fields of Results, Verdict, Retry and Reject.
const (
	fieldSeq         = 1
	fieldAckRuns     = 2
	fieldVerdicts    = 3
	fieldOutputs     = 4
	fieldCause       = 5
	fieldOutputDelay = 6
	fieldShardingKey = 7

	fieldVerdictIndex = 1
	fieldRetry        = 2
	fieldReject       = 3
	fieldUntouched    = 4
)

// ResultsEncoder writes results as a PluginFrame; like BatchEncoder it counts first.
type ResultsEncoder struct {
	results        *Results
	outputs        recordsSize
	ackRuns, cause int
	delays         int
	inner, Length  int // Length is the size of the whole frame
}

// EncodeResults counts results. Class and Text of verdicts and sharding keys must be UTF-8.
func EncodeResults(r *Results) ResultsEncoder {
	e := ResultsEncoder{results: r, ackRuns: sizeColumn(r.AckRuns)}
	e.inner = sizeUint(r.Seq) + sizeBytes(e.ackRuns)
	for i := range r.Verdicts {
		n := r.Verdicts[i].size()
		e.inner += 1 + varintSize(uint64(n)) + n
	}
	if r.Outputs.Len() > 0 {
		e.outputs, e.cause = r.Outputs.size(), sizeColumn(r.Cause)
		e.inner += 1 + varintSize(uint64(e.outputs.total)) + e.outputs.total + sizeBytes(e.cause)
		for _, d := range r.OutputDelay {
			e.delays += varintSize(millis(d))
		}
		e.inner += sizeBytes(e.delays)
		for _, key := range r.OutputShardingKey {
			e.inner += 1 + varintSize(uint64(len(key))) + len(key)
		}
	}
	e.Length = 1 + varintSize(uint64(e.inner)) + e.inner
	return e
}

// millis rounds up, so that a delay of less than a millisecond does not become none.
func millis(d time.Duration) uint64 {
	if d <= 0 {
		return 0
	}
	return uint64((d-1)/time.Millisecond) + 1
}

// Size returns the length of the frame in bytes.
func (e *ResultsEncoder) Size() int { return e.Length }

// Append writes the frame.
func (e *ResultsEncoder) Append(dst []byte) []byte {
	r := e.results
	dst = appendHead(grow(dst, e.Length), PluginResults, e.inner)
	dst = appendUint(dst, fieldSeq, r.Seq)
	dst = appendColumn(dst, fieldAckRuns, e.ackRuns, r.AckRuns)
	for i := range r.Verdicts {
		dst = r.Verdicts[i].append(appendHead(dst, fieldVerdicts, r.Verdicts[i].size()))
	}
	if r.Outputs.Len() == 0 {
		return dst
	}
	dst = appendColumn(dst, fieldCause, e.cause, r.Cause)
	if e.delays > 0 {
		dst = appendHead(dst, fieldOutputDelay, e.delays)
		for _, d := range r.OutputDelay {
			dst = appendVarint(dst, millis(d))
		}
	}
	for _, key := range r.OutputShardingKey {
		dst = append(appendHead(dst, fieldShardingKey, len(key)), key...)
	}
	return r.Outputs.append(appendHead(dst, fieldOutputs, e.outputs.total), &e.outputs)
}

// answerSize is the size of the message inside Retry or Reject.
func (v *Verdict) answerSize() int {
	n := sizeBytes(len(v.Class)) + sizeBytes(len(v.Text))
	if v.Kind == VerdictRetry {
		n += sizeUint(millis(v.Delay))
	}
	return n
}

func (v *Verdict) size() int {
	n := sizeUint(uint64(v.Index))
	switch v.Kind {
	case VerdictRetry, VerdictReject:
		answer := v.answerSize()
		n += 1 + varintSize(uint64(answer)) + answer
	case VerdictUntouched:
		n += 2
	default: // an ack belongs into AckRuns
	}
	return n
}

func (v *Verdict) append(dst []byte) []byte {
	dst = appendUint(dst, fieldVerdictIndex, uint64(v.Index))
	switch v.Kind {
	case VerdictRetry:
		dst = appendUint(appendHead(dst, fieldRetry, v.answerSize()), 1, millis(v.Delay))
		return appendBytes(appendBytes(dst, 2, v.Class), 3, v.Text)
	case VerdictReject:
		dst = appendHead(dst, fieldReject, v.answerSize())
		return appendBytes(appendBytes(dst, 1, v.Class), 2, v.Text)
	case VerdictUntouched:
		return appendHead(dst, fieldUntouched, 0)
	default:
		return dst
	}
}

// Check compares results with the batch they answer, which had that many records. It does not look for records that are
// answered twice: that needs the answers before.
func (r *Results) Check(records int) error {
	if len(r.AckRuns)%2 != 0 {
		return fmt.Errorf("column ack_runs has %d entries, which is not two a run", len(r.AckRuns))
	}
	for i := 0; i < len(r.AckRuns); i += 2 {
		if start, count := uint64(r.AckRuns[i]), uint64(r.AckRuns[i+1]); start+count > uint64(records) {
			return fmt.Errorf("column ack_runs answers records %d to %d of a batch of %d", start, start+count-1, records)
		}
	}
	for i := range r.Verdicts {
		if int64(r.Verdicts[i].Index) >= int64(records) {
			return fmt.Errorf("column verdicts answers record %d of a batch of %d", r.Verdicts[i].Index, records)
		}
	}
	for i, cause := range r.Cause {
		if int64(cause) >= int64(records) {
			return fmt.Errorf("column cause says that output %d came from record %d of a batch of %d", i, cause, records)
		}
	}
	return nil
}

// validate checks that the columns of the outputs agree.
func (r *Results) validate() error {
	if err := r.Outputs.Validate(); err != nil {
		return fmt.Errorf("outputs: %w", err)
	}
	n := r.Outputs.Len()
	if len(r.Cause) != n {
		return fmt.Errorf("column cause has %d entries for %d outputs", len(r.Cause), n)
	}
	if len(r.OutputDelay) != 0 && len(r.OutputDelay) != n {
		return fmt.Errorf("column output_delay_ms has %d entries for %d outputs", len(r.OutputDelay), n)
	}
	if len(r.OutputShardingKey) != 0 && len(r.OutputShardingKey) != n {
		return fmt.Errorf("column output_sharding_key has %d entries for %d outputs", len(r.OutputShardingKey), n)
	}
	return nil
}

// duration caps what another process wrote at the longest duration.
func duration(millis uint64) time.Duration {
	if millis > math.MaxInt64/uint64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(millis) * time.Millisecond
}
