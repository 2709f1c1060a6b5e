package runtime

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/runtime/internal/group"
	"github.com/streamd/streamd/runtime/internal/queue"
)

// membersHold says why a group's members could not be listed.
func membersHold(ctx context.Context, groupName string, err error) Hold {
	if errors.Is(err, rocketmq.ErrGroupNotFound) {
		return Hold{Kind: queue.HoldGroupMissing, Text: unseen(ctx, err) + "; it is joined as soon as somebody creates it: mqadmin updateSubGroup -c CLUSTER -g " + groupName}
	}
	return Hold{Kind: queue.HoldMembersUnknown, Text: unseen(ctx, err)}
}

// groupPause is how often a group that does not exist is looked for.
const groupPause = 3 * time.Second

// introduceAgain heartbeats out of turn while a broker ignores the group because it does not exist there, and has the next
// round begin soon: the first heartbeat after somebody created the group is what makes this member known.
func (r *round) introduceAgain(ctx context.Context, topics []group.Topic) {
	if !slices.ContainsFunc(topics, func(t group.Topic) bool { return t.Hold.Kind == queue.HoldGroupMissing }) {
		return
	}
	asking, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if err := r.m.s.broker.Heartbeat(asking); err != nil {
		r.m.s.log.Debug("heartbeating for a group that was not there", "error", err.Error())
	}
	r.m.calls.Go(func() {
		timer := time.NewTimer(groupPause)
		defer timer.Stop()
		select {
		case <-timer.C:
			r.m.send(group.Input{Kind: group.InChange})
		case <-ctx.Done():
		}
	})
}
