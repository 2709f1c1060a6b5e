package groupview_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/groupview"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

var errRefused = errors.New("access control refuses it")

// halfSeen is a group on two brokers, of which one tells nothing, with a topic that nobody tells of.
type halfSeen struct{ javaGroup }

func (h halfSeen) Queues(ctx context.Context, topic string) ([]sdk.Queue, error) {
	if topic == "Bills" {
		return nil, errRefused
	}
	qs, err := h.javaGroup.Queues(ctx, topic)
	return append(qs, sdk.Queue{Topic: topic, Broker: "broker-b"}), err
}

func (h halfSeen) ConsumerConnections(ctx context.Context, broker, group string) (*wire.ConsumerConnections, error) {
	if broker == "broker-b" {
		return nil, errRefused
	}
	return h.javaGroup.ConsumerConnections(ctx, broker, group)
}

func (halfSeen) PeerInfo(context.Context, string, string) (*wire.ConsumerRunningInfo, error) {
	return nil, errRefused
}

// What could not be seen stands in Gaps, with its reason, so that nobody concludes from not seeing it.
func TestRead_gaps(t *testing.T) {
	g, err := groupview.Read(t.Context(), halfSeen{newJavaGroup(t, time.Second)}, "billing", []string{"Bills"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, gap := range g.Gaps {
		if !errors.Is(gap.Err, errRefused) {
			t.Errorf("%+v does not say why", gap)
		}
		got = append(got, strings.TrimSuffix(gap.What+" of topic "+gap.Topic, " of topic "))
	}
	want := []string{"the members at broker broker-b", "the queues of Bills of topic Bills", "the queues of member 10.0.0.5@4711#1"}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("gaps %q, want %q", got, want)
	}
	whole, err := groupview.Read(t.Context(), newJavaGroup(t, time.Second), "billing", nil)
	if err != nil || len(whole.Gaps) != 0 {
		t.Errorf("a group that is seen: %v, %v", whole.Gaps, err)
	}
}
