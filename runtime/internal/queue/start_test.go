package queue

import (
	"testing"
	"time"
)

// The table of consumer-semantics.md 2.7, row by row, with what streamd does otherwise (design.md 7). The rows -2 and -3, a
// question that failed, never come here: the worker asks again.
func TestDecideStart(t *testing.T) {
	const (
		stored = 42
		first  = 7 // the queue's minimum
	)
	last, begin, at := From{}, From{Where: WhereFirst}, From{Where: WhereTimestamp, At: time.Unix(1, 0)}
	for name, tt := range map[string]struct {
		facts  StartFacts
		action StartAction
		offset int64
	}{
		"stored, last":                 {StartFacts{HasStored: true, Stored: stored, From: last}, StartAt, stored},
		"stored, first":                {StartFacts{HasStored: true, Stored: stored, From: begin}, StartAt, stored},
		"stored, timestamp":            {StartFacts{HasStored: true, Stored: stored, From: at}, StartAt, stored},
		"stored 0 is stored":           {StartFacts{HasStored: true, Min: first, From: last}, StartAt, 0}, // expired since: the first pull tells
		"stored, retry topic":          {StartFacts{HasStored: true, Stored: stored, Retry: true, From: last}, StartAt, stored},
		"none, retry topic, last":      {StartFacts{Retry: true, From: last}, StartFresh, 0},
		"none, retry topic, first":     {StartFacts{Retry: true, From: begin}, StartFresh, 0},
		"none, retry topic, timestamp": {StartFacts{Retry: true, From: at}, StartFresh, 0}, // Java: its end, so that retries are skipped
		"none, last":                   {StartFacts{Min: first, From: last}, StartAtMax, 0},
		"none, first":                  {StartFacts{Min: first, From: begin}, StartFresh, first}, // Java: 0, and a repair
		"none, first, all there":       {StartFacts{From: begin}, StartFresh, 0},
		"none, timestamp":              {StartFacts{Min: first, From: at}, StartAtTime, 0},

		// A queue without an offset, while the group has some in the topic: new, or its offset was lost.
		"new queue, last":        {StartFacts{OthersHaveOffsets: true, From: last}, StartFresh, 0}, // Java: its end, so that its first messages are skipped
		"new queue, first":       {StartFacts{OthersHaveOffsets: true, From: begin}, StartFresh, 0},
		"new queue, timestamp":   {StartFacts{OthersHaveOffsets: true, From: at}, StartFresh, 0},
		"lost offset, last":      {StartFacts{OthersHaveOffsets: true, Min: first, From: last}, StartHold, 0},
		"lost offset, first":     {StartFacts{OthersHaveOffsets: true, Min: first, From: begin}, StartHold, 0},
		"lost offset, timestamp": {StartFacts{OthersHaveOffsets: true, Min: first, From: at}, StartHold, 0},
	} {
		action, offset := DecideStart(tt.facts)
		if action != tt.action || offset != tt.offset {
			t.Errorf("%s: action %d at %d, want %d at %d", name, action, offset, tt.action, tt.offset)
		}
	}
}

// What becomes of an offset that the broker refuses with 21 (consumer-semantics.md 3.7, 3.8; design.md 7).
func TestDecideRepair(t *testing.T) {
	for name, tt := range map[string]struct {
		facts   RepairFacts
		action  RepairAction
		offset  int64
		expired int64
	}{
		"a reset back":                         {RepairFacts{Requested: 500, Next: 100, Max: 1000, Reset: true}, RepairReset, 100, 0},
		"a reset ahead":                        {RepairFacts{Requested: 500, Next: 900, Max: 1000, Reset: true}, RepairReset, 900, 0},
		"a reset from below the queue's start": {RepairFacts{Requested: 5, Next: 900, Min: 100, Max: 1000, Reset: true}, RepairReset, 900, 0},
		"a reset from above its end":           {RepairFacts{Requested: 5000, Next: 0, Max: 10, Reset: true}, RepairReset, 0, 0},
		"a reset that nobody calls one":        {RepairFacts{Requested: 500, Next: 100, Max: 1000}, RepairReset, 100, 0},
		"expired":                              {RepairFacts{Requested: 5, Next: 100, Min: 100, Max: 1000, LastSettledMillis: 1}, RepairExpired, 100, 95},
		"everything expired":                   {RepairFacts{Requested: 5, Next: 100, Min: 100, Max: 100}, RepairExpired, 100, 95},
		"above the end, time known":            {RepairFacts{Requested: 5000, Next: 10, Max: 10, LastSettledMillis: 1}, RepairByTime, 0, 0},
		"above the end, no time":               {RepairFacts{Requested: 5000, Next: 10, Max: 10}, RepairHold, 0, 0},
		"one above the end, sent to 0":         {RepairFacts{Requested: 11, Next: 0, Max: 10}, RepairHold, 0, 0}, // PO-P03
		"made anew and empty":                  {RepairFacts{Requested: 5000, LastSettledMillis: 1}, RepairByTime, 0, 0},
	} {
		action, offset, expired := DecideRepair(tt.facts)
		if action != tt.action || offset != tt.offset || expired != tt.expired {
			t.Errorf("%s: action %d at %d, %d expired; want %d at %d, %d", name, action, offset, expired, tt.action, tt.offset, tt.expired)
		}
	}
}
