package broker

import (
	"strings"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// onConfig is 319: the name server's settings as properties text.
func (n *NameServer) onConfig() *remote.Answer {
	_, port := hostPort(n.Address())
	return withBody([]byte("clusterTest=false\nlistenPort=" + port + "\norderMessageEnable=true\n"))
}

// onUpdateConfig is 318. None of the settings can be changed while the name server runs; writing what is so already is fine.
func (n *NameServer) onUpdateConfig(r *remote.Request) *remote.Answer {
	present := "\n" + string(n.onConfig().Body)
	for line := range strings.Lines(string(r.Command.Body)) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(present, "\n"+line+"\n") {
			name, _, _ := strings.Cut(line, "=")
			return plain(wire.RespInvalidParameter, "this name server has no setting "+name+" that can be changed while it runs")
		}
	}
	return plain(wire.RespSuccess, "")
}
