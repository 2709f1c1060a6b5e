package wire

import (
	"bytes"
	"iter"
	"strings"
)

// The separators of the properties' text form (remoting-protocol.md 4.4).
const (
	propertyEnd  = '\x02' // after each property; a reader does not need the last one
	propertyLink = '\x01' // between name and value
)

// The property names that streamd reads or writes (MessageConst; remoting-protocol.md 5.1).
const (
	PropKeys              = "KEYS"
	PropTags              = "TAGS"
	PropWait              = "WAIT"
	PropDelayLevel        = "DELAY"
	PropUniqueKey         = "UNIQ_KEY"
	PropRetryTopic        = "RETRY_TOPIC"
	PropRealTopic         = "REAL_TOPIC"
	PropRealQueueID       = "REAL_QID"
	PropOriginMessageID   = "ORIGIN_MESSAGE_ID"
	PropReconsumeTime     = "RECONSUME_TIME"
	PropMaxReconsumeTimes = "MAX_RECONSUME_TIMES"
	PropConsumeStartTime  = "CONSUME_START_TIME"
	PropMinOffset         = "MIN_OFFSET"
	PropMaxOffset         = "MAX_OFFSET"
	PropCluster           = "CLUSTER"
	PropRegion            = "MSG_REGION"
	PropTraceOn           = "TRACE_ON"
	PropInstanceID        = "INSTANCE_ID" // the namespace of the producer, version 1
	PropShardingKey       = "__SHARDINGKEY"
	PropGoShardingKey     = "SHARDING_KEY" // the Go client's own name for it
	PropProducerGroup     = "PGROUP"
	PropHalfMessage       = "TRAN_MSG"
	PropTransactionID     = "__transactionId__"
	PropCheckTimes        = "TRANSACTION_CHECK_TIMES" // how often its producers were asked
	PropInnerCount        = "INNER_NUM"
	PropInnerBase         = "INNER_BASE"
	PropTimerDelaySeconds = "TIMER_DELAY_SEC"
	PropTimerDelayMillis  = "TIMER_DELAY_MS"
	PropTimerDeliver      = "TIMER_DELIVER_MS"
	PropTimerOut          = "TIMER_OUT_MS"
	PropCorrelationID     = "CORRELATION_ID"
	PropReplyToClient     = "REPLY_TO_CLIENT"
	PropBornHost          = "__BORNHOST"
	PropCRC               = "__CRC32#"
)

// KeySeparator stands between the keys in PropKeys.
const KeySeparator = " "

// Property returns the value of the last property called name, as Java's map would hold it. It allocates nothing; the
// value aliases the message.
func (m *Message) Property(name string) ([]byte, bool) { return FindProperty(m.Properties, name) }

// AllProperties yields the properties in stored order; a repeated name comes repeatedly, and its last value counts.
func (m *Message) AllProperties() iter.Seq2[[]byte, []byte] { return Properties(m.Properties) }

// FindProperty is Message.Property on a text form.
func FindProperty(text []byte, name string) (value []byte, ok bool) {
	n := len(name)
	if n == 0 || !bytes.Contains(text, []byte(name)) { // mostly it is not there, and searching the whole text is fastest
		return nil, false
	}
	for len(text) > n {
		end := bytes.IndexByte(text, propertyEnd)
		if end < 0 {
			end = len(text)
		}
		if end > n+1 && text[n] == propertyLink && string(text[:n]) == name && isName(name) {
			value, ok = text[n+1:end:end], true
		}
		if end == len(text) {
			break
		}
		text = text[end+1:]
	}
	return value, ok
}

// FindProperties looks for several properties in one pass: values[i] becomes the last value of names[i], nil when there is
// none. values must be as long as names.
func FindProperties(text []byte, names []string, values [][]byte) {
	clear(values[:len(names)])
	for len(text) > 0 {
		end := bytes.IndexByte(text, propertyEnd)
		if end < 0 {
			end = len(text)
		}
		for i, name := range names {
			n := len(name)
			if end > n+1 && n > 0 && text[n] == propertyLink && string(text[:n]) == name && isName(name) {
				values[i] = text[n+1 : end : end]
			}
		}
		if end == len(text) {
			return
		}
		text = text[end+1:]
	}
}

// isName tells whether a text can be a name at all: it ends where the first link stands.
func isName(name string) bool { return strings.IndexByte(name, propertyLink) < 0 }

// Properties yields the properties of a text form. What Java drops is dropped: an item without name, link or value.
func Properties(text []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for len(text) > 0 {
			var item []byte
			item, text = cutProperty(text)
			link := bytes.IndexByte(item, propertyLink)
			if link <= 0 || link == len(item)-1 {
				continue
			}
			if !yield(item[:link], item[link+1:]) {
				return
			}
		}
	}
}

func cutProperty(text []byte) (item, rest []byte) {
	item, rest, _ = bytes.Cut(text, []byte{propertyEnd})
	return item, rest
}

// PropertyMap returns the properties of a text form as a map; the last of a repeated name stays.
func PropertyMap(text []byte) map[string]string {
	m := make(map[string]string, bytes.Count(text, []byte{propertyEnd})+1)
	for name, value := range Properties(text) {
		m[string(name)] = string(value)
	}
	return m
}

// AppendProperty appends one property to a text form. It ends an unfinished last property first, so that the two do not
// run together. The error wraps ErrNotEncodable: empty names and values and the two separators have no form.
func AppendProperty(dst []byte, name, value string) ([]byte, error) {
	switch {
	case name == "":
		return dst, notEncodable("property without a name")
	case value == "":
		return dst, notEncodable("property %q without a value", name)
	case strings.ContainsAny(name, "\x01\x02"):
		return dst, notEncodable("property name %q: it has a separator (U+0001 or U+0002)", name)
	case strings.ContainsAny(value, "\x01\x02"):
		return dst, notEncodable("value of property %q: it has a separator (U+0001 or U+0002)", name)
	}
	if n := len(dst); n > 0 && dst[n-1] != propertyEnd {
		dst = append(dst, propertyEnd)
	}
	dst = append(dst, name...)
	dst = append(dst, propertyLink)
	dst = append(dst, value...)
	return append(dst, propertyEnd), nil
}

// SetProperty returns a text form like text in which name has the one value given; text is not changed. An empty value
// only removes. Everything else stays byte for byte, so a message's other properties survive whatever they hold.
func SetProperty(text []byte, name, value string) ([]byte, error) {
	out := make([]byte, 0, len(text)+len(name)+len(value)+2)
	for rest := text; len(rest) > 0; {
		var item []byte
		item, rest = cutProperty(rest)
		if len(item) == 0 || propertyNamed(item, name) {
			continue
		}
		out = append(append(out, item...), propertyEnd)
	}
	if value == "" {
		return out, nil
	}
	return AppendProperty(out, name, value)
}

func propertyNamed(item []byte, name string) bool {
	link := bytes.IndexByte(item, propertyLink)
	return link >= 0 && string(item[:link]) == name
}
