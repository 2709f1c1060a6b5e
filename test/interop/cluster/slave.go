package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
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

// Promote starts the slave of a master that is gone again, as the master of their name on its own store and address: what operators
// do by hand where nothing elects a master.
func (c *Cluster) Promote(ctx context.Context, slave *Broker) error {
	slave.Kill()
	f, err := os.OpenFile(slave.conf, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("opening the config of %s: %w", slave.Name, err)
	}
	_, err = f.WriteString("brokerId=0\nbrokerRole=ASYNC_MASTER\nbrokerIP2=127.0.0.1\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing the config of %s: %w", slave.Name, err)
	}
	return slave.Start(ctx)
}
