package runtime

import "errors"

// CheckStreams tells everything that New would say against streams, before anything is there that they need.
func CheckStreams(streams []StreamConfig) error {
	cfg := Config{Streams: streams, Handlers: absent{}, Brokers: map[string]Broker{}, Offsets: func(*StreamConfig) (Offsets, error) { return nil, errAbsent }}
	for i := range streams {
		cfg.Brokers[streams[i].Broker] = absent{}
	}
	return cfg.withDefaults().check()
}

var errAbsent = errors.New("nothing is there yet")

// absent stands for what a check does not look at.
type absent struct {
	Broker
	Handlers
}
