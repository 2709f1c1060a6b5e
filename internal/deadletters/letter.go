package deadletters

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// PropertyRedriven is the property of a redriven message that names the dead letter it was.
const PropertyRedriven = "STREAMD_REDRIVEN"

// Letter is one dead letter.
type Letter struct {
	ID          string    `json:"id"` // offset message id of the dead letter itself: unique in its cluster
	Queue       sdk.Queue `json:"queue"`
	Offset      int64     `json:"offset"`
	OriginTopic string    `json:"origin_topic"`
	OriginID    string    `json:"msg_id"`               // the message's identity: its first id, the same over all attempts
	UniqueKey   string    `json:"unique_key,omitempty"` // what Java's clients show as its id
	Keys        []string  `json:"keys,omitempty"`
	Tag         string    `json:"tag,omitempty"`
	Attempts    int       `json:"attempts"` // deliveries, as RocketMQ counts them
	Died        time.Time `json:"died"`     // when it was stored here
	Born        time.Time `json:"born"`
	Bytes       int       `json:"bytes"`              // of the body as stored
	TraceID     string    `json:"trace_id,omitempty"` // of its trace context
	Redriven    string    `json:"redriven,omitempty"` // the dead letter that it was before it was redriven and died again
	Reason      *Reason   `json:"reason,omitempty"`   // of the last failed attempt, as streamd recorded it

	message wire.Message // with memory of its own
}

// letterOf copies a stored message.
func letterOf(m *wire.Message, q sdk.Queue, namespace string) (*Letter, error) {
	var own wire.Message
	if _, err := own.Decode(bytes.Clone(m.Raw)); err != nil {
		return nil, fmt.Errorf("reading the dead letter at %s@%d: %w", q, m.QueueOffset, err)
	}
	text := func(name string) string {
		v, _ := own.Property(name)
		return string(v)
	}
	l := &Letter{
		ID: own.OffsetID(), Queue: q, Offset: own.QueueOffset, OriginTopic: wire.WithoutNamespace(namespace, text(wire.PropRetryTopic)),
		OriginID: wire.Identity(&own), UniqueKey: own.UniqueKey(), Keys: own.Keys(), Tag: string(own.Tag()), Attempts: int(own.ReconsumeTimes),
		Died: time.UnixMilli(own.StoreMillis), Born: time.UnixMilli(own.BornMillis), Bytes: len(own.Body), Redriven: text(PropertyRedriven), message: own,
	}
	if parts := strings.Split(text("traceparent"), "-"); len(parts) == 4 {
		l.TraceID = parts[1]
	}
	return l, nil
}

// Body is the body, decompressed.
func (l *Letter) Body() ([]byte, error) {
	body, err := wire.NewInflater(maxBody).AppendBody(nil, &l.message)
	if err != nil {
		return nil, fmt.Errorf("reading the body of dead letter %s: %w", l.ID, err)
	}
	return body, nil
}

// maxBody bounds a decompressed body. Brokers take 4 MiB; some are set to more.
const maxBody = 64 << 20

// Properties are all that the dead letter has.
func (l *Letter) Properties() map[string]string { return wire.PropertyMap(l.message.Properties) }

// Filter says which dead letters are meant. What is left out does not restrict.
type Filter struct {
	IDs      []string // the dead letter's id, the message's first id, or its UNIQ_KEY
	Keys     []string
	Topic    string    // that it came from
	From, To time.Time // when it died: From <= died < To
}

// Empty tells that every dead letter is meant.
func (f *Filter) Empty() bool {
	return len(f.IDs) == 0 && len(f.Keys) == 0 && f.Topic == "" && f.From.IsZero() && f.To.IsZero()
}

// takes tells whether a dead letter is meant.
func (f *Filter) takes(l *Letter) bool {
	id := func(id string) bool { return id == l.ID || id == l.OriginID || id == l.UniqueKey && id != "" }
	key := func(key string) bool { return slices.Contains(l.Keys, key) }
	return (len(f.IDs) == 0 || slices.ContainsFunc(f.IDs, id)) && (len(f.Keys) == 0 || slices.ContainsFunc(f.Keys, key)) &&
		(f.Topic == "" || f.Topic == l.OriginTopic) && (f.From.IsZero() || !l.Died.Before(f.From)) && (f.To.IsZero() || l.Died.Before(f.To))
}
