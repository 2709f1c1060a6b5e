package firstparty

import (
	"context"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/serve"
)

// Specs are the components that `streamd serve-plugin allocate` serves: every strategy of allocate under its config name.
func Specs() []sdk.Spec {
	return []sdk.Spec{
		spec(allocate.NameAveragely, "contiguous ranges of the sorted queues (Java's AVG)", allocate.NewAveragely),
		spec(allocate.NameAveragelyByCircle, "queues dealt one by one (Java's AVG_BY_CIRCLE)", allocate.NewAveragelyByCircle),
		spec(allocate.NameConfig, "the queues that this member's config lists (Java's CONFIG)", allocate.NewConfigured),
		spec(allocate.NameMachineRoom, "queues of chosen machine rooms only (Java's MACHINE_ROOM)", allocate.NewMachineRoom),
		spec(allocate.NameMachineRoomNearby, "queues to members of the same room first (Java's MACHINE_ROOM_NEARBY)", allocate.NewMachineRoomNearby),
		spec(allocate.NameConsistentHash, "Java's consistent hash ring (CONSISTENT_HASH)", allocate.NewConsistentHash),
		spec(allocate.NameSticky, "balanced within one queue, and few queues move when members change", allocate.NewSticky),
	}
}

func spec[C any](name, summary string, build func(C) (allocate.Strategy, error)) sdk.Spec {
	return serve.Strategy(name, func(_ context.Context, config C, _ sdk.Env) (allocate.Strategy, error) {
		return build(config)
	}).WithSummary(summary)
}
