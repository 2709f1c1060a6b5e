package broker

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// settingOrdered is the one setting of the name server that can be changed.
const settingOrdered = "orderMessageEnable"

// onConfig is 319: the name server's settings as properties text.
func (n *NameServer) onConfig() *remote.Answer {
	port := n.port()
	n.mu.Lock()
	ordered := n.ordered
	n.mu.Unlock()
	return withBody([]byte("clusterTest=false\nlistenPort=" + port + "\n" + settingOrdered + "=" + strconv.FormatBool(ordered) + "\n"))
}

// port is where clients reach the name server: its own listener, or that of a broker that it lives with.
func (n *NameServer) port() string {
	_, port := hostPort(n.Address())
	for _, known := range n.registered() {
		if _, foreign := known.(*foreignBroker); !foreign && port == "0" {
			_, port = hostPort(known.brokerData().Addrs[wire.MasterID])
		}
	}
	return port
}

// onUpdateConfig is 318: changes settings, all or none. What is so already may be written again.
func (n *NameServer) onUpdateConfig(r *remote.Request) *remote.Answer {
	present := "\n" + string(n.onConfig().Body)
	var ordered *bool
	for line := range strings.Lines(string(r.Command.Body)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.Contains(present, "\n"+line+"\n") {
			continue
		}
		name, value, _ := strings.Cut(line, "=")
		on, err := strconv.ParseBool(value)
		switch {
		case name != settingOrdered:
			return plain(wire.RespInvalidParameter, "this name server has no setting "+name+" that can be changed while it runs")
		case err != nil:
			return plain(wire.RespInvalidParameter, "the setting "+name+" is true or false")
		}
		ordered = &on
	}
	if ordered != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.ordered = *ordered
		if n.saveSetting != nil {
			n.saveSetting(settingOrdered, []byte(strconv.FormatBool(*ordered)))
		}
	}
	return plain(wire.RespSuccess, "")
}

// loadSettings takes over what the store of the broker has that the name server belongs to.
func (n *NameServer) loadSettings(stored map[string][]byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.saveSetting == nil {
		return nil
	}
	n.ordered = true
	if text, ok := stored[settingOrdered]; ok {
		on, err := strconv.ParseBool(string(text))
		if err != nil {
			return fmt.Errorf("the setting %s is damaged: %w", settingOrdered, err)
		}
		n.ordered = on
	}
	return nil
}
