package broker

import (
	"fmt"
	"strings"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// onBrokerConfig is 26: the settings, by RocketMQ's names, as properties text.
func (b *Broker) onBrokerConfig(*remote.Request) *remote.Answer {
	var text strings.Builder
	for _, s := range b.settings() {
		text.WriteString(s.name + "=" + s.value + "\n")
	}
	a := headed(wire.RespSuccess, "",
		wire.Field{Key: "version", Value: fmt.Sprintf(`{"counter":%d,"stateVersion":0,"timestamp":%d}`, b.tuned.version.Load(), b.started().UnixMilli())})
	a.Body = []byte(text.String())
	return a
}

// onUpdateConfig is 25: changes settings, all or none, for good. RocketMQ answers success to a name that it does not know; here
// it is refused.
func (b *Broker) onUpdateConfig(r *remote.Request) *remote.Answer {
	known := make(map[string]setting)
	for _, s := range b.settings() {
		known[s.name] = s
	}
	var changes []func()
	var changed []string
	for line := range strings.Lines(string(r.Command.Body)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, _ := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		s, ok := known[name]
		switch {
		case name == "configBlackList" || name == "brokerConfigPath":
			return plain(wire.RespNoPermission, "Can not update config in black list.")
		case !ok:
			return plain(wire.RespInvalidParameter, "this broker has no setting "+name)
		case value == s.value:
			continue
		case s.change == nil:
			return plain(wire.RespInvalidParameter, "the setting "+name+" cannot be changed while the broker runs; change its config and start it again")
		}
		apply, err := s.change(value)
		if err != nil {
			return plain(wire.RespInvalidParameter, "the setting "+name+": "+err.Error())
		}
		changes, changed = append(changes, apply), append(changed, name)
	}
	for _, apply := range changes {
		apply()
	}
	if len(changes) > 0 {
		b.saveSettings(changed)
		b.tuned.version.Add(1)
	}
	return plain(wire.RespSuccess, "")
}
