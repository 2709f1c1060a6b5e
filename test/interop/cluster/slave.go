package cluster

import (
	"context"
	"maps"
)

// RunSlave adds a slave to a running master: same name, id 1, a store of its own. The cluster's end is its end too. The
// master has to tell its replication address: brokerIP2=127.0.0.1 among its settings. settings differ from the defaults.
func (c *Cluster) RunSlave(ctx context.Context, of *Broker, settings map[string]string) (*Broker, error) {
	all := map[string]string{"brokerName": of.Name, "brokerId": "1", "brokerRole": "SLAVE"}
	maps.Copy(all, settings)
	if err := c.addBroker(ctx, of.Name+"-slave", Options{Broker: all}); err != nil {
		return nil, err
	}
	return c.Brokers[len(c.Brokers)-1], nil
}
