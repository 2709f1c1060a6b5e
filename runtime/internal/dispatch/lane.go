package dispatch

import (
	"maps"
	"slices"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/runtime/internal/queue"
)

// lane is what the core knows of an open lane.
type lane struct {
	id      LaneID
	info    frame.LaneInfo
	key     string // binary and config
	solo    bool
	closing bool
	credits int
	seq     uint64
	flights map[uint64]*flight
	spare   []*flight
	ghosts  map[frame.Ref]ghost // records of ordered queues that were given up and are not answered
}

// ghost is a record that the engine has given up and its handler has not.
type ghost struct {
	strand strandID
	own    *queue.Ownership
}

// flight is one batch that is out.
type flight struct {
	seq   uint64
	items []*queue.Delivery // nil once answered
	left  int
}

func newLane(id LaneID, info frame.LaneInfo, solo bool) *lane {
	return &lane{id: id, info: info, key: info.Checksum + "/" + info.ConfigHash, solo: solo, flights: make(map[uint64]*flight)}
}

func (l *lane) begin() *flight {
	l.seq++
	var f *flight
	if n := len(l.spare); n > 0 {
		f, l.spare = l.spare[n-1], l.spare[:n-1]
	} else {
		f = &flight{}
	}
	f.seq = l.seq
	return f
}

func (l *lane) launch(f *flight) {
	f.left = len(f.items)
	l.credits -= len(f.items)
	l.flights[f.seq] = f
}

// answer takes record i out of its flight; nil when it was answered before or never sent.
func (l *lane) answer(f *flight, i uint32) *queue.Delivery {
	if int(i) >= len(f.items) || f.items[i] == nil {
		return nil
	}
	d := f.items[i]
	f.items[i] = nil
	f.left--
	return d
}

// seqs lists the flights in order.
func (l *lane) seqs() []uint64 { return slices.Sorted(maps.Keys(l.flights)) }

func (l *lane) end(f *flight) {
	if f.left > 0 {
		return
	}
	delete(l.flights, f.seq)
	f.items = f.items[:0]
	if len(l.spare) < 64 {
		l.spare = append(l.spare, f)
	}
}

// running is a record that the handler said is running for longer than a second.
type running struct {
	lane  *lane
	seq   uint64
	index uint32
	until time.Time
}
