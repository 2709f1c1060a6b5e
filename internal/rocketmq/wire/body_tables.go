package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
)

// MessageQueue is one queue of a topic at a broker, as bodies name it.
type MessageQueue struct {
	BrokerName string `json:"brokerName"`
	QueueID    int32  `json:"queueId"`
	Topic      string `json:"topic"`
}

// Compare orders queues as Java does: by topic, broker name, id.
func (q MessageQueue) Compare(o MessageQueue) int {
	return cmp.Or(cmp.Compare(q.Topic, o.Topic), cmp.Compare(q.BrokerName, o.BrokerName), cmp.Compare(q.QueueID, o.QueueID))
}

// QueueTable is a map keyed by queues. Its keys are written as bare objects, as fastjson writes them and as Java and Go
// clients need them; they are read bare or as strings. An entry whose key is a back reference ("$ref") is dropped: what it
// points to cannot be known (remoting-protocol.md 3.1).
type QueueTable[V any] map[MessageQueue]V

// MarshalJSON writes the table for EncodeBody, which strips the marks from the keys. encoding/json sorts the keys.
func (t QueueTable[V]) MarshalJSON() ([]byte, error) {
	m := make(map[string]V, len(t))
	for q, v := range t {
		key := append([]byte(keyMark), `{"brokerName":`...)
		key = appendJSONString(key, q.BrokerName)
		key = append(key, `,"queueId":`...)
		key = strconv.AppendInt(key, int64(q.QueueID), 10)
		key = append(key, `,"topic":`...)
		key = appendJSONString(key, q.Topic)
		m[string(append(key, '}'))] = v
	}
	return json.Marshal(m)
}

// UnmarshalJSON reads what Normalize made of the table.
func (t *QueueTable[V]) UnmarshalJSON(text []byte) error {
	var m map[string]V
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("reading a table by queue: %w", err)
	}
	if m == nil {
		*t = nil
		return nil
	}
	*t = make(QueueTable[V], len(m))
	for key, v := range m {
		var q struct {
			MessageQueue
			Ref *string `json:"$ref"`
		}
		if err := json.Unmarshal([]byte(key), &q); err != nil {
			return fmt.Errorf("reading the queue %q: %w", shorten(key), err)
		}
		if q.Ref == nil {
			(*t)[q.MessageQueue] = v
		}
	}
	return nil
}

// IDTable is a map keyed by whole numbers: broker ids or queue ids. Its keys are bare in Fastjson, quoted in Standard.
type IDTable[V any] map[int64]V

// MarshalJSON writes the table for EncodeBody, which strips the marks from the keys.
func (t IDTable[V]) MarshalJSON() ([]byte, error) {
	m := make(map[string]V, len(t))
	for id, v := range t {
		m[keyMark+strconv.FormatInt(id, 10)] = v
	}
	return json.Marshal(m)
}

// CodeSet holds the hashes of a subscription's tags. The Go client sends them as strings.
type CodeSet []int32

// UnmarshalJSON reads numbers, quoted or not.
func (s *CodeSet) UnmarshalJSON(text []byte) error {
	var raw []json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return fmt.Errorf("reading codeSet: %w", err)
	}
	*s = make(CodeSet, 0, len(raw))
	for _, r := range raw {
		n, err := strconv.ParseInt(string(bytes.Trim(r, `"`)), 10, 32)
		if err != nil {
			return fmt.Errorf("reading codeSet: %w", err)
		}
		*s = append(*s, int32(n))
	}
	return nil
}
