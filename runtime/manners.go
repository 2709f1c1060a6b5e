package runtime

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// foreignPause is how long the last answer of a member that is no streamd serves, before it is asked again.
const foreignPause = time.Minute

// errSilentLately means that a member did not answer within the last foreignPause, and is not asked again yet.
var errSilentLately = errors.New("the member did not answer a minute ago, and is left in peace")

// manners is how other members are asked what they run (307). A Java client answers that on the few threads, one for each
// CPU, that the answers to its own calls come back on, those to its pulls among them, and asks brokers for the offset of each
// of its queues on the way: questions on all of these threads at once make it wait for itself, 5 s for each queue (seen with
// 5.3.3, docs/migration.md). So a member is asked one question at a time, and one that is no streamd one a minute.
// It is safe for concurrent use.
type manners struct {
	now func() time.Time

	mu    sync.Mutex // held for memory work only
	peers map[string]*peerManners
}

// peerManners is one member's. Whoever has the turn may read and write the rest.
type peerManners struct {
	turn    chan struct{} // has room for one
	foreign bool
	at      time.Time // of the last question to one that is no streamd
	info    *wire.ConsumerRunningInfo
	err     error
}

func newManners(now func() time.Time) *manners {
	return &manners{now: now, peers: map[string]*peerManners{}}
}

func (n *manners) of(id string) *peerManners {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.peers[id]
	if p == nil {
		p = &peerManners{turn: make(chan struct{}, 1)}
		n.peers[id] = p
	}
	return p
}

// keep forgets all but these members.
func (n *manners) keep(ids []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id := range n.peers {
		if !slices.Contains(ids, id) {
			delete(n.peers, id)
		}
	}
}

// ask puts the question unless an answer serves still. The answer of a streamd is always one to a question that was put after
// the call.
func (n *manners) ask(ctx context.Context, id string, put func(context.Context) (*wire.ConsumerRunningInfo, error)) (*wire.ConsumerRunningInfo, error) {
	p := n.of(id)
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p.foreign && n.now().Sub(p.at) < foreignPause {
		return p.info, p.err
	}
	info, err := put(ctx)
	switch {
	case err == nil && info != nil:
		p.foreign = info.Properties[allocate.PropertyStreamd] == ""
		p.info, p.err = info, nil
	case ctx.Err() != nil: // it had its time
		p.info, p.err = nil, errSilentLately
	default: // refused by a broker: no thread of the member's had to do with it
		return info, err
	}
	p.at = n.now()
	return info, err
}
