package groupview

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Members is what Ask asks. *rocketmq.Client fills it.
type Members interface {
	PeerInfo(ctx context.Context, group, clientID string) (*wire.ConsumerRunningInfo, error)
}

// Ask sorts the members of a group by client id and asks each for its own view (307), side by side: a silent one takes as
// long as all of them. When all have answered told is called for one after the other, in their order.
func Ask[M any](ctx context.Context, c Members, group string, members []M, id func(*M) string, told func(m *M, info *wire.ConsumerRunningInfo, err error)) {
	slices.SortFunc(members, func(a, b M) int { return strings.Compare(id(&a), id(&b)) })
	infos, errs := make([]*wire.ConsumerRunningInfo, len(members)), make([]error, len(members))
	var wg sync.WaitGroup
	for i := range members {
		wg.Go(func() { infos[i], errs[i] = c.PeerInfo(ctx, group, id(&members[i])) })
	}
	wg.Wait()
	for i := range members {
		told(&members[i], infos[i], errs[i])
	}
}
