package broker

import (
	"fmt"
	"maps"
	"strings"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// The most key-value configs of a name server, and the most bytes of one with its names.
const (
	maxConfigs     = 10_000
	maxConfigBytes = 16 << 10
)

// onPutKV is 100.
func (n *NameServer) onPutKV(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	namespace, key, value := f.name("namespace"), f.text("key"), f.text("value")
	if bad := f.bad(); bad != nil {
		return bad
	}
	if len(namespace)+len(key)+len(value) > maxConfigBytes {
		return plain(wire.RespSystemError, fmt.Sprintf("the config is longer than %d bytes", maxConfigBytes))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	table := n.kv[namespace]
	if _, known := table[key]; !known && n.configsLocked() >= maxConfigs {
		return plain(wire.RespSystemError, fmt.Sprintf("the name server has %d configs, which is the most", maxConfigs))
	}
	if table == nil {
		table = make(map[string]string)
		n.kv[namespace] = table
	}
	table[key] = value
	n.saveLocked(namespace, key, []byte(value))
	return plain(wire.RespSuccess, "")
}

func (n *NameServer) configsLocked() (count int) {
	for _, table := range n.kv {
		count += len(table)
	}
	return count
}

// onGetKV is 101.
func (n *NameServer) onGetKV(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	namespace, key := f.text("namespace"), f.text("key")
	if bad := f.bad(); bad != nil {
		return bad
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	value, ok := n.kv[namespace][key]
	if !ok {
		return headed(wire.RespQueryNotFound, fmt.Sprintf("No config item, Namespace: %s Key: %s", namespace, key))
	}
	return headed(wire.RespSuccess, "", text("value", value))
}

// onDeleteKV is 102, a success whether the key was there or not.
func (n *NameServer) onDeleteKV(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	namespace, key := f.text("namespace"), f.text("key")
	if bad := f.bad(); bad != nil {
		return bad
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.kv[namespace], key)
	n.saveLocked(namespace, key, nil)
	return plain(wire.RespSuccess, "")
}

// onListKV is 219.
func (n *NameServer) onListKV(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	namespace := f.text("namespace")
	if bad := f.bad(); bad != nil {
		return bad
	}
	n.mu.Lock()
	table := maps.Clone(n.kv[namespace])
	n.mu.Unlock()
	if table == nil {
		return plain(wire.RespQueryNotFound, "No config item, Namespace: "+namespace)
	}
	return jsonBody(wire.KVTable{Table: table}, wire.Standard)
}

// saveLocked stores a value with the broker that the name server belongs to, if it belongs to one.
func (n *NameServer) saveLocked(namespace, key string, value []byte) {
	if n.save != nil {
		n.save(joinKey(namespace, key), value)
	}
}

// loadKV takes over what the store of the broker has that the name server belongs to.
func (n *NameServer) loadKV(stored map[string][]byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.save == nil {
		return nil
	}
	clear(n.kv)
	for k, value := range stored {
		namespace, key, ok := strings.Cut(k, "\x00")
		if !ok {
			return fmt.Errorf("the entry %q is damaged", k)
		}
		if n.kv[namespace] == nil {
			n.kv[namespace] = make(map[string]string)
		}
		n.kv[namespace][key] = string(value)
	}
	return nil
}
