package broker

import (
	"errors"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// maxRegistered bounds what members may register in all, in bytes: an ordinary one takes less than a KiB.
const maxRegistered = 64 << 20

// What an entry takes beside its texts, about.
const (
	memberSize       = 256
	subscriptionSize = 320
)

var errNoRoom = errors.New("the broker has no room for more members and subscriptions")

// roomLocked tells whether so many bytes more may be registered.
func (t *memberTable) roomLocked(more int) error {
	if t.bytes+more > maxRegistered {
		return errNoRoom
	}
	return nil
}

// measureLocked brings the sizes of a group and of the table up to date.
func (t *memberTable) measureLocked(name string, g *consumerGroup) {
	size := 0
	for _, s := range g.subscriptions {
		size += sizeOfSubscription(s)
	}
	for _, m := range g.members {
		size += sizeOfMember(name, m)
	}
	t.bytes += size - g.bytes
	g.bytes = size
}

// sizeOfMember also stands for a member whose client id changes while its connection stays: ids are short.
func sizeOfMember(group string, m member) int { return memberSize + len(group) + len(m.clientID) }

func sizeOfSubscription(s wire.SubscriptionData) int {
	size := subscriptionSize + 2*len(s.Topic) + len(s.SubString) + 4*len(s.CodeSet)
	for _, tag := range s.TagsSet {
		size += 16 + len(tag)
	}
	return size
}

func sizeOfData(c wire.ConsumerData) (size int) {
	for _, s := range c.SubscriptionDataSet {
		size += sizeOfSubscription(s)
	}
	return size
}
