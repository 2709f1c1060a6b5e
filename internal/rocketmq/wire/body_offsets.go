package wire

import "strings"

// GroupOffsets is the answer to 43, as a replica reads it: all offsets that a broker stores.
type GroupOffsets struct {
	// Offsets holds them by "topic@group" and queue id.
	Offsets map[string]IDTable[int64] `json:"offsetTable,omitzero"`
}

// Only returns the part of one group.
func (g *GroupOffsets) Only(group string) GroupOffsets {
	part := GroupOffsets{Offsets: map[string]IDTable[int64]{}}
	for key, queues := range g.Offsets {
		if strings.HasSuffix(key, "@"+group) {
			part.Offsets[key] = queues
		}
	}
	return part
}

// Of returns what is stored for a group, topic and queue; ok is false when nothing is.
func (g *GroupOffsets) Of(group, topic string, queueID int32) (offset int64, ok bool) {
	offset, ok = g.Offsets[topic+"@"+group][int64(queueID)]
	return offset, ok
}
