package broker

import (
	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// coldData is the answer to 2003: which groups are throttled because they read what is no longer in memory.
type coldData struct {
	Configured map[string]int64    `json:"configTable"`
	Running    map[string]struct{} `json:"runtimeTable"`
}

// onColdData is 2003, which mqadmin's getColdDataFlowCtrInfo sends. Nobody is throttled here.
func (b *Broker) onColdData(*remote.Request) *remote.Answer {
	return jsonBody(coldData{Configured: map[string]int64{}, Running: map[string]struct{}{}}, wire.Standard)
}
