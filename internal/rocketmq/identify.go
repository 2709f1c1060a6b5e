package rocketmq

import (
	"strings"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// identify adds to an answer to 307 what only the client knows, under Java's names (ClientConfig). What is there stays.
func (c *Client) identify(info *wire.ConsumerRunningInfo) {
	if info.Properties == nil {
		info.Properties = map[string]string{}
	}
	servers := strings.Join(c.NameServers(), ";")
	ip, instance, _ := strings.Cut(c.cfg.ClientID, "@")
	for name, value := range map[string]string{
		wire.RunningNameServers: servers + ";", // as Java's list of addresses ends
		"namesrvAddr":           servers, "clientIP": ip, "instanceName": instance,
	} {
		if _, there := info.Properties[name]; !there {
			info.Properties[name] = value
		}
	}
}
