package runtime

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/rocketmq"
)

// A topic that cannot be looked for says what to do: make it, or look at the name servers.
func TestWhatMakesATopic(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		topic string
		err   error
		want  string
	}{
		{"Orders", rocketmq.ErrTopicNotFound, "mqadmin updateTopic -c CLUSTER -t Orders"},
		{"%RETRY%billing", rocketmq.ErrTopicNotFound, "first heartbeat"},
		{"Orders", rocketmq.ErrNoNameServer, "look whether the addresses under name_servers are right (the usual port is 9876)"},
	} {
		if got := whatMakes(c.topic, fmt.Errorf("asking: %w", c.err)); !strings.Contains(got, c.want) {
			t.Errorf("%s, %v: %q, want %q in it", c.topic, c.err, got, c.want)
		}
	}
	if got := whatMakes("Orders", errors.New("odd")); got != "" {
		t.Errorf("an error that nothing is known of: %q", got)
	}
}
