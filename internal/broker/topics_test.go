package broker

import (
	"strconv"
	"testing"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// TestRetryTopics_areBoundedToo: those are made by sending to them whatever the template allows.
func TestRetryTopics_areBoundedToo(t *testing.T) {
	t.Parallel()
	b := New(Config{})
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	send := func() *sending {
		return &sending{topic: wire.RetryTopic("New"), template: wire.DefaultTopic, templateQueues: 4}
	}
	b.topics.mu.Lock()
	for i := len(b.topics.topics); i < maxTopics; i++ {
		name := "T" + strconv.Itoa(i)
		b.topics.topics[name] = newTopic(name, 1, permUsual)
	}
	b.topics.mu.Unlock()
	if _, bad := b.checkSend(nil, send()); bad == nil || bad.Code != wire.RespTopicNotExist || len(b.topics.names()) != maxTopics {
		t.Errorf("%d topics, answered %+v", len(b.topics.names()), bad)
	}
	b.topics.remove("T99999")
	if _, bad := b.checkSend(nil, send()); bad != nil {
		t.Errorf("with room for it: %+v", bad)
	}
}
