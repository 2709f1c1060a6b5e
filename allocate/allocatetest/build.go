package allocatetest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/streamd/streamd/allocate"
)

// Queues makes n queues of topic at one broker, ids 0 to n-1.
func Queues(topic, broker string, n int) []allocate.Queue {
	out := make([]allocate.Queue, n)
	for i := range out {
		out[i] = allocate.Queue{Topic: topic, Broker: broker, ID: int32(i)}
	}
	return out
}

// Members makes n client ids that look like those of real clients.
func Members(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("10.0.%d.%d@%d#%d", i/200, i%200+1, 1000+i, 7_000_000_000+i*7919)
	}
	return out
}

// ParseQueues reads the notation of the tables: "a:0-3 b:1,5" is queues 0 to 3 of broker a, and 1 and 5 of broker b.
func ParseQueues(topic, text string) ([]allocate.Queue, error) {
	var out []allocate.Queue
	for part := range strings.FieldsSeq(text) {
		broker, ids, ok := strings.Cut(part, ":")
		if !ok {
			return nil, fmt.Errorf("%q: want broker:ids", part)
		}
		for span := range strings.SplitSeq(ids, ",") {
			low, high, isRange := strings.Cut(span, "-")
			if !isRange {
				high = low
			}
			from, err := strconv.ParseInt(low, 10, 32)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", part, err)
			}
			to, err := strconv.ParseInt(high, 10, 32)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", part, err)
			}
			for id := from; id <= to; id++ {
				out = append(out, allocate.Queue{Topic: topic, Broker: broker, ID: int32(id)})
			}
		}
	}
	return out, nil
}

// Input makes the question of the first member; the test fails if there is none.
func Input(tb testing.TB, queues []allocate.Queue, members []string) allocate.Input {
	tb.Helper()
	in, err := allocate.NewInput(allocate.View{
		Group: "G", Topic: queues[0].Topic, Self: members[0], Queues: queues, Members: members,
	})
	if err != nil {
		tb.Fatalf("making an input: %v", err)
	}
	return in
}
