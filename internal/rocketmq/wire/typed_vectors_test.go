package wire

import (
	"maps"
	"slices"
	"testing"
)

// untyped lists the codes of the vectors that streamd neither sends nor answers, beside unknown ones.
func untyped() []RequestCode {
	return []RequestCode{
		ReqRecallMessage, ReqQueryAssignment, ReqSetMessageRequestMode, ReqPopMessage, ReqAckMessage, ReqPeekMessage,
		ReqChangeInvisibleTime, ReqNotification, ReqPollingInfo, ReqBatchAckMessage, 9999,
	}
}

func TestRecordedRequestsTyped(t *testing.T) {
	t.Parallel()
	refused := map[int]string{}
	for _, r := range recordedFrames(t) {
		if r.IsResponse {
			continue
		}
		c := decodeRecorded(t, &r)
		h := NewHeader(c.RequestCode())
		if h == nil {
			if !slices.Contains(untyped(), c.RequestCode()) {
				t.Errorf("[%d] %s has no type", r.Seq, r.Name)
			}
			continue
		}
		if h.RequestCode() != c.RequestCode() {
			t.Errorf("[%d] the type of %s has the code %s", r.Seq, r.Name, h.RequestCode())
		}
		if err := DecodeFields(c.Ext, h); err != nil {
			refused[r.Seq] = r.Flow + ": " + err.Error()
			continue
		}
		if got := EncodeFields(h); !maps.Equal(got.Map(), mapOrEmpty(c.Ext)) {
			t.Errorf("[%d] %s: %v became %v", r.Seq, r.Name, c.Ext, got)
		}
	}
	// The hand-made bad requests of the flow "errors", and no others.
	want := []string{
		"errors: bad header field: consumerGroup is missing",
		`errors: bad header field: queueId has the bad value "abc"`,
		"errors: bad header field: queueId is missing",
		"errors: bad header field: topic is missing",
	}
	if got := slices.Compact(slices.Sorted(maps.Values(refused))); !slices.Equal(got, want) {
		t.Errorf("refused: %q, want %q", got, want)
	}
}

func mapOrEmpty(f Fields) map[string]string {
	if f == nil {
		return map[string]string{}
	}
	return f.Map()
}

func TestRecordedResponsesTyped(t *testing.T) {
	t.Parallel()
	typed := 0
	for _, r := range recordedFrames(t) {
		if !r.IsResponse || NewHeader(RequestCode(r.RequestCode)) == nil {
			continue
		}
		c := decodeRecorded(t, &r)
		h := NewResponseHeader(RequestCode(r.RequestCode))
		if err := DecodeFields(c.Ext, h); err != nil {
			if carriesFields(c, RequestCode(r.RequestCode)) {
				t.Errorf("[%d] answer %s to %d: %v", r.Seq, r.Name, r.RequestCode, err)
			}
			continue
		}
		typed++
		if got := EncodeFields(h); !maps.Equal(got.Map(), mapOrEmpty(c.Ext)) {
			t.Errorf("[%d] answer to %d: %v became %v", r.Seq, r.RequestCode, c.Ext, got)
		}
	}
	if typed < 900 {
		t.Errorf("only %d answers were typed", typed)
	}
}

// carriesFields tells whether an answer has to have the fields of its type.
func carriesFields(c *Command, request RequestCode) bool {
	switch c.ResponseCode() {
	case RespSuccess, RespFlushDiskTimeout, RespSlaveNotAvailable, RespFlushSlaveTimeout:
		return true
	case RespPullNotFound, RespPullRetryImmediately, RespPullOffsetMoved:
		return request == ReqPullMessage || request == ReqLitePullMessage
	default:
		return false
	}
}
