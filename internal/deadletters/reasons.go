package deadletters

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// FailureTopic is where streamd writes its failure records unless the config says otherwise.
const FailureTopic = "STREAMD_FAILURES"

// Reason is what streamd recorded of the last failed attempt.
type Reason struct {
	Attempt       int       `json:"attempt"`
	Verdict       string    `json:"verdict"` // retry, reject or crash
	Class         string    `json:"class,omitempty"`
	Text          string    `json:"text,omitempty"`
	Handler       string    `json:"handler,omitempty"`
	Plugin        string    `json:"plugin,omitempty"`
	PluginVersion string    `json:"plugin_version,omitempty"`
	Member        string    `json:"member,omitempty"`
	TraceID       string    `json:"trace_id,omitempty"`
	Failed        time.Time `json:"failed"`
}

const (
	// reasonSlack is how far a record's time may lie from the dead letter's: it is written beside it, by another clock.
	reasonSlack = time.Minute
	// maxRecords bounds how many records are read for a list.
	maxRecords = 50_000
)

var errEnough = errors.New("enough records were read")

// Reasons looks the failure records of dead letters up, by identity, around the times when they died. What could not be
// learned is said in the notes; a letter without a record stays without a reason (a Java member wrote none).
func (b *Box) Reasons(ctx context.Context, topic string, letters []*Letter) (notes []string) {
	if topic == "" || topic == "-" || len(letters) == 0 {
		return nil
	}
	byID := map[string][]*Letter{}
	first, last := letters[0].Died, letters[0].Died
	for _, l := range letters {
		byID[l.OriginID] = append(byID[l.OriginID], l)
		if l.Died.Before(first) {
			first = l.Died
		}
		if l.Died.After(last) {
			last = l.Died
		}
	}
	queues, err := b.cluster.Queues(ctx, topic)
	if errors.Is(err, rocketmq.ErrTopicNotFound) {
		return []string{fmt.Sprintf("there is no topic %s: reasons are not known (--failures names another)", topic)}
	}
	if err != nil {
		return []string{fmt.Sprintf("reasons are not known: %v", err)}
	}
	left := maxRecords
	for _, q := range queues {
		err := b.records(ctx, q, first.Add(-reasonSlack), last.Add(reasonSlack), &left, byID)
		switch {
		case errors.Is(err, errEnough):
			notes = append(notes, fmt.Sprintf("more than %d failure records lie in that time: some reasons were not looked up; ask for a shorter time", maxRecords))
			return notes
		case refused(err):
			return []string{fmt.Sprintf("reasons are not known (--failures - looks none up): %v", err)}
		case err != nil:
			notes = append(notes, fmt.Sprintf("some reasons are not known: %v", err))
		}
	}
	return notes
}

// refused tells that access control refuses to show the records, and so those of each queue.
func refused(err error) bool {
	_, yes := rocketmq.AccessRefused(err)
	return yes
}

// records reads a queue of failure records between two times.
func (b *Box) records(ctx context.Context, q sdk.Queue, from, to time.Time, left *int, byID map[string][]*Letter) error {
	start, err := b.cluster.OffsetAt(ctx, q, from)
	if err != nil {
		return err //nolint:wrapcheck // says which queue
	}
	end, err := b.cluster.MaxOffset(ctx, q)
	if err != nil {
		return err //nolint:wrapcheck // as above
	}
	err = scan(ctx, b.cluster, q, start, end, func(m *wire.Message) error {
		if time.UnixMilli(m.StoreMillis).After(to) {
			return errPast
		}
		if *left--; *left < 0 {
			return errEnough
		}
		return b.record(m, byID)
	})
	if errors.Is(err, errPast) {
		return nil
	}
	return err
}

var errPast = errors.New("past the time that was asked for")

func (b *Box) record(m *wire.Message, byID map[string][]*Letter) error {
	body, err := wire.NewInflater(maxBody).AppendBody(nil, m)
	if err != nil {
		return fmt.Errorf("reading a failure record: %w", err)
	}
	var record struct {
		MessageID string `json:"msg_id"`
		Identity  string `json:"identity"` // its name before it was msg_id everywhere; records stay for days
		Group     string `json:"group"`
		Reason
	}
	if readable := json.Unmarshal(body, &record) == nil; !readable || record.Group != b.Group {
		return nil // somebody else's message in the topic
	}
	for _, l := range byID[cmp.Or(record.MessageID, record.Identity)] {
		// Of a message that died, was redriven and died again each dead letter has its own last attempt.
		if record.Failed.After(l.Died.Add(reasonSlack)) || l.Reason != nil && l.Reason.Failed.After(record.Failed) {
			continue
		}
		r := record.Reason
		l.Reason = &r
	}
	return nil
}
