package msgtrace

import (
	"strconv"
	"strings"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
)

// What Java's TraceConstants call CONTENT_SPLITOR and FIELD_SPLITOR.
const (
	fieldEnd  = '\x01'
	recordEnd = '\x02'
)

// absent is what Java writes for a field that is null.
const absent = "null"

// defaultRegion is MixAll.DEFAULT_TRACE_REGION_ID: the region of brokers that were given none.
const defaultRegion = "DefaultRegion"

// Code is how an attempt ended: Java's ConsumeReturnType.
type Code int

// The codes, in Java's order.
const (
	CodeSuccess Code = iota
	CodeTimeout
	CodeException
	CodeReturnedNull
	CodeFailed
)

// Attempt is one delivery of a message to a handler.
type Attempt struct {
	Region    string
	Group     string
	Topic     string
	RequestID string // joins what was written before the attempt with what is written after it
	MessageID string // UNIQ_KEY, else the offset id
	Keys      string // separated by blanks; empty = none
	Retries   int    // 0 for the first attempt
	Began     time.Time
}

// Ended is how it ended.
type Ended struct {
	At   time.Time
	Code Code
}

// record is one record on its way.
type record struct {
	topic string // of the message it tells of: records of one topic share a message
	text  string
	keys  []string // by which the record can be found
}

// before is written when the attempt begins.
func (a *Attempt) before() record {
	return a.record("SubBefore", millis(a.Began), a.Region, a.Group, a.RequestID, a.MessageID, strconv.Itoa(a.Retries), orAbsent(a.Keys))
}

// after is written when it has ended.
func (a *Attempt) after(e Ended) record {
	return a.record("SubAfter", a.RequestID, a.MessageID, cost(e.At.Sub(a.Began)), strconv.FormatBool(e.Code == CodeSuccess),
		orAbsent(a.Keys), strconv.Itoa(int(e.Code)), millis(e.At), a.Group)
}

func (a *Attempt) record(fields ...string) record {
	return record{topic: a.Topic, text: join(fields), keys: keysOf(a.MessageID, a.Keys)}
}

// The message types of a Pub record: Java's MessageType.
const (
	typeNormal  = "0"
	typeHalf    = "1"
	typeDelayed = "3"
)

// published tells of a message that was sent.
func published(s *rocketmq.SentMessage) record {
	kind := typeNormal
	switch {
	case s.Half:
		kind = typeHalf
	case s.Delayed:
		kind = typeDelayed
	}
	keys := strings.Join(s.Message.Keys, " ")
	fields := []string{
		"Pub", millis(s.Began), orDefault(s.Result.Region), s.ProducerGroup, s.Message.Topic, s.Result.MessageID, orAbsent(s.Message.Tag),
		orAbsent(keys), s.Addr, strconv.Itoa(s.Bytes), cost(s.Took), kind, s.Result.OffsetMessageID, strconv.FormatBool(s.Result.Status == rocketmq.SendOK),
	}
	return record{topic: s.Message.Topic, text: join(fields), keys: keysOf(s.Result.MessageID, keys)}
}

func join(fields []string) string {
	return strings.Join(fields, string(fieldEnd)) + string(recordEnd)
}

func keysOf(id, keys string) []string { return append([]string{id}, strings.Fields(keys)...) }

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

func cost(d time.Duration) string { return strconv.FormatInt(max(0, d.Milliseconds()), 10) }

func orAbsent(s string) string {
	if s == "" {
		return absent
	}
	return s
}

func orDefault(region string) string {
	if region == "" {
		return defaultRegion
	}
	return region
}
