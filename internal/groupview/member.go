package groupview

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// The properties of streamd's answer to 307 beside allocate's: what group status reads.
const (
	// PropertyPlugins holds a JSON list of Plugin.
	PropertyPlugins = "streamd.plugins"
	// PropertyHoldPrefix and topic/broker/id name the property that says why a queue is held.
	PropertyHoldPrefix = "streamd.hold."
	// PropertyStrategy names the strategy in use.
	PropertyStrategy = "streamd.strategy"
)

// describe takes what a member says of itself.
func (m *Member) describe(info *wire.ConsumerRunningInfo) {
	p := info.Properties
	m.Streamd = p[allocate.PropertyStreamd]
	m.Strategy = p[PropertyStrategy]
	if m.Strategy == "" {
		if peer, err := allocate.PeerOf(m.ClientID, p); err == nil {
			m.Strategy = peer.Strategy
		}
	}
	if ms, err := strconv.ParseInt(p[wire.RunningStartMillis], 10, 64); err == nil && ms > 0 {
		m.Started = time.UnixMilli(ms)
	}
	if list := p[PropertyPlugins]; list != "" {
		if err := json.Unmarshal([]byte(list), &m.Plugins); err != nil {
			m.Silent = "its list of plugins cannot be read: " + err.Error()
		}
	}
}

// holdOf is why a streamd member holds a queue; empty when it does not.
func holdOf(properties map[string]string, q sdk.Queue) string {
	return strings.TrimSpace(properties[PropertyHoldPrefix+q.String()])
}
