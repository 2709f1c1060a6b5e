package groupview

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/sdk"
)

// PropertyPlugins is the property of streamd's answer to 307 that holds a JSON list of Plugin. The daemon writes it beside
// what the engine tells.
const PropertyPlugins = "streamd.plugins"

// describe takes what a member says of itself. The error is that it cannot be read.
func (m *Member) describe(info *wire.ConsumerRunningInfo) error {
	p := info.Properties
	m.Streamd = p[allocate.PropertyStreamd]
	if peer, err := allocate.PeerOf(m.ClientID, p); err == nil {
		m.Strategy = peer.Strategy
	}
	var unread error
	switch own, err := runtime.ParsePeerInfo(info); {
	case err == nil:
		m.peer = &own
		m.Strategy, m.Stream, m.State = own.Strategy, own.Stream, own.State
		m.Order, m.Locks, m.Heads = string(own.Order), own.Locks, own.Heads
	case !errors.Is(err, runtime.ErrNotStreamd):
		unread = err
	}
	if ms, err := strconv.ParseInt(p[wire.RunningStartMillis], 10, 64); err == nil && ms > 0 {
		m.Started = time.UnixMilli(ms)
	}
	if list := p[PropertyPlugins]; list != "" {
		if err := json.Unmarshal([]byte(list), &m.Plugins); err != nil {
			unread = errors.Join(unread, fmt.Errorf("its list of plugins cannot be read: %w", err))
		}
	}
	return unread
}

// queue is what a streamd member tells of a queue; nil when it tells nothing.
func (m *Member) queue(q sdk.Queue) *runtime.PeerQueue {
	if m.peer == nil {
		return nil
	}
	if pq, ok := m.peer.Queues[q.String()]; ok {
		return &pq
	}
	return nil
}

// holdOf is why a streamd member holds a queue; empty when it does not. What holds the whole stream holds each queue.
func (m *Member) holdOf(q sdk.Queue) string {
	pq := m.queue(q)
	switch {
	case pq == nil:
		return ""
	case pq.Hold != nil:
		return sentence(pq.Hold)
	case len(m.peer.Holds) > 0:
		return sentence(&m.peer.Holds[0])
	}
	return ""
}

func sentence(h *runtime.Hold) string {
	s := string(h.Kind)
	if h.Text != "" {
		s += ": " + h.Text
	}
	if h.For > 0 {
		s += " (for " + h.For.Round(100*time.Millisecond).String() + ")"
	}
	return s
}
