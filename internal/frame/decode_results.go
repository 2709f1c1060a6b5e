package frame

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// errNoAnswer says that a verdict is none of retry, reject, untouched.
var errNoAnswer = errors.New("verdict without an answer")

// keyExtra is what a frame may allocate for each sharding key beyond twice its size: an output that has all columns and next
// to no payload takes so much more. Keys alone, two bytes each, remain too many for it.
const keyExtra = 8

// DecodeResults reads the Results message of a PluginFrame. Trace and Payload of the outputs alias data.
//
// maxVerdicts bounds verdicts and runs: the caller knows how many records it has sent. Their memory is so bounded by what
// the host sent, all other memory by twice the size of data and keyExtra for each sharding key. The columns are valid
// afterwards; whether they fit the batch is for Check to say.
func DecodeResults(data []byte, r *Results, maxVerdicts int) error {
	*r = Results{}
	var c resultCounts
	if err := c.count(data); err != nil {
		return fmt.Errorf("reading results: %w", err)
	}
	if answers := c.verdicts + c.ackRuns/2; answers > maxVerdicts {
		return fmt.Errorf("reading results: %d runs and verdicts for at most %d records", answers, maxVerdicts)
	}
	budget := 2*len(data) + slack + keyExtra*c.keys - 4*c.cause - 8*c.delays - stringHeader*c.keys - c.textBytes
	if budget < 0 {
		return fmt.Errorf("reading results: columns need more memory than twice the %d bytes that arrived", len(data))
	}
	r.AckRuns = sized[uint32](c.ackRuns)
	r.Verdicts = sized[Verdict](c.verdicts)
	r.Cause = sized[uint32](c.cause)
	r.OutputDelay = sized[time.Duration](c.delays)
	r.OutputShardingKey = sized[string](c.keys)
	if err := fillResults(data, r); err != nil {
		return fmt.Errorf("reading results: %w", err)
	}
	if err := decodeRecords(c.outputs, &r.Outputs, budget); err != nil {
		return fmt.Errorf("reading results: outputs: %w", err)
	}
	if err := r.validate(); err != nil {
		return fmt.Errorf("reading results: %w", err)
	}
	return nil
}

func sized[T any](n int) []T {
	if n == 0 {
		return nil
	}
	return make([]T, 0, n)
}

type resultCounts struct {
	ackRuns, verdicts, cause, delays, keys int
	textBytes                              int // of verdicts and sharding keys
	outputs                                []byte
}

func (c *resultCounts) count(data []byte) error {
	for len(data) > 0 {
		f, rest, err := next(data)
		if err != nil {
			return err
		}
		data = rest
		if f.wire == wireBytes {
			switch f.number {
			case fieldVerdicts:
				c.verdicts++
				c.textBytes += len(f.bytes)
			case fieldOutputs:
				if c.outputs != nil {
					return errTwice
				}
				c.outputs = f.bytes
			case fieldShardingKey:
				c.keys++
				c.textBytes += len(f.bytes)
			}
		}
		n := 0
		switch f.number {
		case fieldAckRuns, fieldCause, fieldOutputDelay:
			if n, err = f.entries(wireVarint); err != nil {
				return err
			}
		}
		switch f.number {
		case fieldAckRuns:
			c.ackRuns += n
		case fieldCause:
			c.cause += n
		case fieldOutputDelay:
			c.delays += n
		}
	}
	return nil
}

func fillResults(data []byte, r *Results) error {
	for len(data) > 0 {
		f, rest, err := next(data)
		if err != nil {
			return err
		}
		data = rest
		switch f.number {
		case fieldSeq:
			if f.wire == wireVarint {
				r.Seq = f.value
			}
		case fieldAckRuns:
			r.AckRuns, err = appendEntries(r.AckRuns, &f, wireVarint)
		case fieldCause:
			r.Cause, err = appendEntries(r.Cause, &f, wireVarint)
		case fieldOutputDelay:
			err = appendDelays(r, &f)
		case fieldVerdicts:
			if f.wire == wireBytes {
				r.Verdicts = append(r.Verdicts, Verdict{})
				err = r.Verdicts[len(r.Verdicts)-1].decode(f.bytes)
			}
		case fieldShardingKey:
			if f.wire == wireBytes {
				var key string
				key, err = text(f.bytes)
				r.OutputShardingKey = append(r.OutputShardingKey, key)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func appendDelays(r *Results, f *field) error {
	if f.wire == wireVarint {
		r.OutputDelay = append(r.OutputDelay, duration(f.value))
		return nil
	}
	for b := f.bytes; len(b) > 0; {
		v, rest, err := takeVarint(b)
		if err != nil {
			return err
		}
		r.OutputDelay, b = append(r.OutputDelay, duration(v)), rest
	}
	return nil
}

func text(b []byte) (string, error) {
	if !utf8.Valid(b) {
		return "", errUTF8
	}
	return string(b), nil
}

func (v *Verdict) decode(data []byte) error {
	for len(data) > 0 {
		f, rest, err := next(data)
		if err != nil {
			return err
		}
		data = rest
		if f.number == fieldVerdictIndex && f.wire == wireVarint {
			v.Index = uint32(f.value)
		}
		if f.wire != wireBytes {
			continue
		}
		switch f.number {
		case fieldRetry:
			err = v.decodeAnswer(VerdictRetry, f.bytes)
		case fieldReject:
			err = v.decodeAnswer(VerdictReject, f.bytes)
		case fieldUntouched:
			err = v.decodeAnswer(VerdictUntouched, f.bytes)
		}
		if err != nil {
			return err
		}
	}
	if v.Kind == 0 {
		return errNoAnswer
	}
	return nil
}

// decodeAnswer reads Retry, Reject or Untouched. The same answer twice is merged, another one replaces it: the rule of
// oneof.
func (v *Verdict) decodeAnswer(kind VerdictKind, data []byte) error {
	if v.Kind != kind {
		*v = Verdict{Index: v.Index, Kind: kind}
	}
	class, message := 2, 3
	if kind == VerdictReject {
		class, message = 1, 2
	}
	for len(data) > 0 {
		f, rest, err := next(data)
		if err != nil {
			return err
		}
		data = rest
		switch {
		case kind == VerdictUntouched:
		case f.number == class && f.wire == wireBytes:
			v.Class, err = text(f.bytes)
		case f.number == message && f.wire == wireBytes:
			v.Text, err = text(f.bytes)
		case f.number == 1 && f.wire == wireVarint && kind == VerdictRetry:
			v.Delay = duration(f.value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
