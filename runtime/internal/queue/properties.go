package queue

import "bytes"

// Properties are the properties that the engine reads of a message; each aliases the message, nil = not there.
type Properties struct {
	Tags, Keys, UniqKey, RetryTopic, OriginID, ShardingKey, TraceParent []byte
}

// The separators of RocketMQ's property text (MessageDecoder).
const (
	nameEnd  = 1
	valueEnd = 2
)

// ScanProperties reads a property text in one pass. The last of several equal names wins, as in Java; a pair without a
// separator is passed over, as is the missing last separator of 4.9 brokers.
func ScanProperties(text []byte) (p Properties) {
	for len(text) > 0 {
		end := bytes.IndexByte(text, valueEnd)
		pair := text
		if end >= 0 {
			pair, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		mid := bytes.IndexByte(pair, nameEnd)
		if mid < 0 {
			continue
		}
		p.set(pair[:mid], pair[mid+1:])
	}
	return p
}

func (p *Properties) set(name, value []byte) {
	switch string(name) {
	case "TAGS":
		p.Tags = value
	case "KEYS":
		p.Keys = value
	case "UNIQ_KEY":
		p.UniqKey = value
	case "RETRY_TOPIC":
		p.RetryTopic = value
	case "ORIGIN_MESSAGE_ID":
		p.OriginID = value
	case "__SHARDINGKEY":
		p.ShardingKey = value
	case "traceparent":
		p.TraceParent = value
	}
}
