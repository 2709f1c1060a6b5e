package broker

import (
	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// replication is the answer to 907 (HARuntimeInfo).
type replication struct {
	Master      bool            `json:"master"`
	LogEnd      int64           `json:"masterCommitLogMaxOffset"`
	InSync      int             `json:"inSyncSlaveNums"`
	Connections []struct{}      `json:"haConnectionInfo"`
	Client      replicaProgress `json:"haClientRuntimeInfo"`
}

// replicaProgress is what a replica would say of itself (HAClientRuntimeInfo).
type replicaProgress struct {
	MasterAddress string `json:"masterAddr,omitempty"`
	Transferred   int64  `json:"transferredByteInSecond"`
	MaxOffset     int64  `json:"maxOffset"`
	LastRead      int64  `json:"lastReadTimestamp"`
	LastWrite     int64  `json:"lastWriteTimestamp"`
	Flushed       int64  `json:"masterFlushOffset"`
	Activated     bool   `json:"isActivated"`
}

// onReplicas is 907, which mqadmin's haStatus sends: a master that has no replicas.
func (b *Broker) onReplicas(*remote.Request) *remote.Answer {
	_, next := b.storage.Log()
	return jsonBody(replication{Master: true, LogEnd: next, Connections: []struct{}{}}, wire.Standard)
}
