package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// newBody returns the typed body of a frame, nil when there is none or it is no JSON.
func newBody(code RequestCode, response bool) any {
	if !response {
		switch code {
		case ReqHeartbeat:
			return &HeartbeatData{}
		case ReqLockQueues, ReqUnlockQueues:
			return &LockBody{}
		case ReqCheckClientConfig:
			return &CheckClientBody{}
		case ReqRegisterBroker:
			return &RegisterBrokerBody{}
		case ReqResetConsumerClientOffset:
			return &ResetOffsetBody{}
		case ReqUpdateSubscriptionGroup:
			return &SubscriptionGroup{}
		default:
			return nil
		}
	}
	switch code {
	case ReqGetRoute:
		return &TopicRoute{}
	case ReqGetClusterInfo:
		return &ClusterInfo{}
	case ReqGetConsumerList:
		return &ConsumerList{}
	case ReqLockQueues:
		return &LockResult{}
	case ReqRegisterBroker, ReqGetKVListByNamespace:
		return &KVTable{}
	case ReqGetAllSubscriptionGroups:
		return &SubscriptionGroupTable{}
	case ReqGetTopicStats:
		return &TopicStats{}
	case ReqGetConsumerConnections:
		return &ConsumerConnections{}
	case ReqGetProducerConnections:
		return &ProducerConnections{}
	case ReqGetAllTopics, ReqQueryTopicsByConsumer:
		return &TopicList{}
	case ReqGetConsumeStats:
		return &ConsumeStats{}
	case ReqGetAllTopicConfig:
		return &TopicConfigTable{}
	case ReqGetConsumerStatusOfClient, ReqGetConsumerStatus:
		return &ConsumerStatusBody{}
	case ReqResetOffset:
		return &ResetOffsetBody{}
	case ReqQueryTopicConsumers:
		return &GroupList{}
	case ReqQueryConsumeTimeSpan:
		return &TimeSpans{}
	case ReqGetConsumerRunningInfo:
		return &ConsumerRunningInfo{}
	case ReqConsumeDirectly:
		return &ConsumeDirectlyResult{}
	case ReqQuerySubscription:
		return &QuerySubscriptionBody{}
	case ReqGetTopicConfig:
		return &TopicConfig{}
	default:
		return nil
	}
}

func TestRecordedJSONBodies(t *testing.T) {
	t.Parallel()
	typed := 0
	for _, r := range recordedFrames(t) {
		if r.Decoded.Body == nil {
			continue
		}
		c := decodeRecorded(t, &r)
		want := asAny(t, r.Decoded.Body)
		std, err := Normalize(c.Body)
		if err != nil {
			t.Fatalf("[%d] %s: %v", r.Seq, r.Name, err)
		}
		if got := asAny(t, std); !reflect.DeepEqual(got, want) {
			t.Errorf("[%d] %s: normalized %s, want %s", r.Seq, r.Name, std, r.Decoded.Body)
		}
		code := RequestCode(r.Code)
		if r.IsResponse {
			code = RequestCode(r.RequestCode)
		}
		body := newBody(code, r.IsResponse)
		if body == nil {
			if NewHeader(code) != nil {
				t.Errorf("[%d] %s: the body has no type", r.Seq, r.Name)
			}
			continue
		}
		typed++
		if err := DecodeBody(c.Body, body); err != nil {
			t.Errorf("[%d] %s: %v", r.Seq, r.Name, err)
			continue
		}
		for _, d := range []Dialect{Fastjson, Standard} {
			checkBodyRoundTrip(t, fmt.Sprintf("[%d] %s", r.Seq, r.Name), body, want, d)
		}
	}
	if typed < 400 {
		t.Errorf("only %d bodies were typed", typed)
	}
}

func checkBodyRoundTrip(t *testing.T, what string, body, want any, d Dialect) {
	t.Helper()
	out, err := EncodeBody(body, d)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	std, err := Normalize(out)
	if err != nil {
		t.Errorf("%s: reading %s: %v", what, out, err)
		return
	}
	if got := tidy(asAny(t, std)); !reflect.DeepEqual(got, tidy(want)) {
		t.Errorf("%s: encoded\n%s, recorded\n%v", what, out, want)
	}
}

// asAny parses JSON without losing digits: whole numbers become int64.
func asAny(t *testing.T, text []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return wholeNumbers(v)
}

func wholeNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = wholeNumbers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = wholeNumbers(e)
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			return v
		}
		if f == float64(int64(f)) {
			return int64(f)
		}
		return f
	}
	return v
}

// tidy evens out what reads the same: members that 4.9 does not write yet and 5.x does, hashes as strings and results as
// ordinals, as the Go client writes them. Its misspelling "dropped" is ignored, as by Java.
func tidy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			if !isDefault(k, e) {
				out[tidyKey(k)] = tidyMember(k, e)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = tidy(e)
		}
		return out
	}
	return v
}

func isDefault(key string, v any) bool {
	switch key {
	case "heartbeatFingerprint":
		return v == int64(0)
	case "withoutSub", "onlyThisBroker", "dropped", "droped":
		return v == false
	case "jstack", "remark":
		return v == ""
	}
	return false
}

// tidyKey evens out the order of members in a queue that is a key.
func tidyKey(key string) string {
	var q MessageQueue
	if !strings.HasPrefix(key, "{") || json.Unmarshal([]byte(key), &q) != nil {
		return key
	}
	return fmt.Sprint(q)
}

func tidyMember(key string, v any) any {
	switch key {
	case "codeSet":
		var codes []string
		for _, c := range v.([]any) {
			if n, ok := c.(int64); ok {
				c = strconv.FormatInt(n, 10)
			}
			codes = append(codes, c.(string))
		}
		return codes
	case "consumeResult":
		if v == int64(0) {
			return string(ConsumeSuccess)
		}
	}
	return tidy(v)
}
