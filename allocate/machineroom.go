package allocate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MachineRoomConfig names the rooms whose brokers are read.
type MachineRoomConfig struct {
	Rooms []string `json:"rooms" required:"true" doc:"rooms whose brokers (room@broker) are read"`
}

// NewMachineRoom makes Java's MACHINE_ROOM: only queues of brokers named room@broker with one of the rooms are divided,
// the others stay uncovered (AllocateMessageQueueByMachineRoom; consumer-semantics.md 2.9). Java fails at run time when
// no rooms are set; here that is an error at once.
func NewMachineRoom(c MachineRoomConfig) (Strategy, error) {
	if len(c.Rooms) == 0 {
		return nil, errors.New("strategy machine_room needs rooms: the part before '@' of the names of the brokers to read")
	}
	rooms := slices.Clone(c.Rooms)
	return &builtin{name: NameMachineRoom, needs: Needs{Partial: true}, allocate: func(in Input) ([]int32, error) {
		return machineRoom(in, rooms), nil
	}}, nil
}

// machineRoom gives each member a contiguous range of the kept queues, and the remainder, from the end, one by one.
func machineRoom(in Input, rooms []string) []int32 {
	owner := make([]int32, len(in.Queues))
	var kept []int
	for i, q := range in.Queues {
		owner[i] = Uncovered
		if room, ok := roomOfBroker(q.Broker); ok && slices.Contains(rooms, room) {
			kept = append(kept, i)
		}
	}
	members := len(in.Members)
	each := len(kept) / members
	for k, i := range kept {
		if k < each*members {
			owner[i] = asOwner(k / each)
		} else {
			owner[i] = asOwner(k - each*members)
		}
	}
	return owner
}

// roomOfBroker reads room@broker as Java's split("@") does: exactly two parts, trailing empty ones do not count.
func roomOfBroker(broker string) (string, bool) {
	parts := strings.Split(strings.TrimRight(broker, "@"), "@")
	if len(parts) != 2 {
		return "", false
	}
	return parts[0], true
}

// NearbyConfig says how rooms are found and what divides the queues within a room.
type NearbyConfig struct {
	// Inner is the strategy within a room; averagely when empty. Also averagely_by_circle and consistent_hash.
	Inner string `json:"inner,omitempty" enum:"averagely,averagely_by_circle,consistent_hash" default:"averagely" doc:"strategy within a room"`
	// Separator ends the room in a broker's name and in a client id: "-" when empty, so broker A-b is in room A.
	Separator string `json:"separator,omitempty" default:"-" doc:"ends the room in a broker name and in a client id"`
	// MemberAttribute, when set, is the attribute of a client id (…@zone=A) that names a member's room.
	MemberAttribute string `json:"member_attribute,omitempty" doc:"attribute of the client id that names the room of a member"`
}

// NewMachineRoomNearby makes Java's MACHINE_ROOM_NEARBY: queues go to members in the broker's room; rooms without
// members are divided among all (AllocateMachineRoomNearby; consumer-semantics.md 2.9). A broker or a member without a
// room is an error at every member, so nobody moves. Java's resolver is the application's code; here it is the part
// before a separator, or an attribute of the member.
func NewMachineRoomNearby(c NearbyConfig) (Strategy, error) {
	if c.Inner == "" {
		c.Inner = NameAveragely
	}
	if c.Separator == "" {
		c.Separator = "-"
	}
	switch c.Inner {
	case NameAveragely, NameAveragelyByCircle, NameConsistentHash: // what Java knows: the result stays Java's
	default:
		return nil, fmt.Errorf("strategy machine_room_nearby: inner is %q; use %s, %s or %s",
			c.Inner, NameAveragely, NameAveragelyByCircle, NameConsistentHash)
	}
	inner, err := New(c.Inner, nil)
	if err != nil {
		return nil, err
	}
	n := nearby{config: c, inner: inner}
	needs := inner.Needs()
	if c.MemberAttribute != "" {
		needs.Attributes = append(slices.Clone(needs.Attributes), c.MemberAttribute)
	}
	return &builtin{name: NameMachineRoomNearby, needs: needs, allocate: n.allocate}, nil
}

type nearby struct {
	config NearbyConfig
	inner  Strategy
}

func (n *nearby) allocate(in Input) ([]int32, error) {
	queues, err := group(len(in.Queues), func(i int) (string, error) { return n.prefix("broker", in.Queues[i].Broker) })
	if err != nil {
		return nil, err
	}
	members, err := group(len(in.Members), func(i int) (string, error) { return n.roomOfMember(in.Members[i]) })
	if err != nil {
		return nil, err
	}
	everybody := make([]int, len(in.Members))
	for i := range everybody {
		everybody[i] = i
	}
	owner := make([]int32, len(in.Queues))
	for _, room := range slices.Sorted(maps.Keys(queues)) {
		among := members[room]
		if len(among) == 0 {
			among = everybody
		}
		if err := n.divide(in, owner, queues[room], among); err != nil {
			return nil, fmt.Errorf("dividing room %s: %w", room, err)
		}
	}
	return owner, nil
}

// divide lets the inner strategy divide some of the queues among some of the members, both by index.
func (n *nearby) divide(in Input, owner []int32, queues, members []int) error {
	part := Input{Group: in.Group, Topic: in.Topic, Queues: make([]Queue, len(queues)), Members: make([]Member, len(members))}
	for k, i := range queues {
		part.Queues[k] = in.Queues[i]
	}
	for k, i := range members {
		part.Members[k] = in.Members[i]
	}
	answer, err := n.inner.Allocate(part)
	if err != nil {
		return err
	}
	for k, i := range queues {
		owner[i] = answer[k]
		if answer[k] >= 0 {
			owner[i] = asOwner(members[answer[k]])
		}
	}
	return nil
}

func (n *nearby) roomOfMember(m Member) (string, error) {
	if n.config.MemberAttribute == "" {
		return n.prefix("member", m.ClientID)
	}
	room := m.Attributes[n.config.MemberAttribute]
	if room == "" {
		return "", fmt.Errorf("member %s has no attribute %s: give it to every member of the group", m.ClientID, n.config.MemberAttribute)
	}
	return room, nil
}

func (n *nearby) prefix(what, name string) (string, error) {
	room, _, found := strings.Cut(name, n.config.Separator)
	if !found || room == "" {
		return "", fmt.Errorf("%s %s names no room: it has to begin with ROOM%s", what, name, n.config.Separator)
	}
	return room, nil
}

// group collects the indexes 0..n-1 by room, in order.
func group(n int, room func(int) (string, error)) (map[string][]int, error) {
	out := map[string][]int{}
	for i := range n {
		r, err := room(i)
		if err != nil {
			return nil, err
		}
		out[r] = append(out[r], i)
	}
	return out, nil
}
