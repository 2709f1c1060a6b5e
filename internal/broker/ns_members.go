package broker

import (
	"strconv"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// onDataVersion is 322, by which a broker asks whether it has to register its topics again: always, for what they were
// is not kept by version.
func (n *NameServer) onDataVersion(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	f.text("brokerName")
	if bad := f.bad(); bad != nil {
		return bad
	}
	return headed(wire.RespSuccess, "", text("changed", strconv.FormatBool(true)))
}

// onMemberGroup is 901: the addresses of a broker's replicas.
func (n *NameServer) onMemberGroup(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	var body wire.MemberGroup
	body.Group.Cluster, body.Group.Name = f.text("clusterName"), f.text("brokerName")
	if bad := f.bad(); bad != nil {
		return bad
	}
	body.Group.Addrs = wire.IDTable[string]{}
	n.mu.Lock()
	known := n.brokers[body.Group.Name]
	n.mu.Unlock()
	if known != nil {
		if d := known.brokerData(); d.Cluster == body.Group.Cluster {
			body.Group.Addrs = d.Addrs
		}
	}
	a := jsonBody(body, wire.Fastjson)
	a.Remark = unset
	return a
}

// onBrokerBeat is 904: a sign of life of a broker that registered over the wire, which its connection gives as well.
func (n *NameServer) onBrokerBeat(*remote.Request) *remote.Answer { return plain(wire.RespSuccess, "") }
