// Package buildinfo says which streamd this is.
package buildinfo

import (
	goruntime "runtime"
	"runtime/debug"

	"github.com/streamd/streamd/internal/border"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// clientVersion is what streamd says of itself on the wire: a higher one makes brokers expect more (design.md 4).
const clientVersion = wire.Version4_9_8

// Info is the answer of "streamd version".
type Info struct {
	Version        string `json:"version"`
	Commit         string `json:"commit"`
	Go             string `json:"go"`
	Platform       string `json:"platform"`
	PluginProtocol int    `json:"plugin_protocol"`
	Client         string `json:"rocketmq_client"`
}

// Read takes what the Go toolchain recorded in the binary.
func Read() Info {
	i := Info{
		Version: "v0.0.0-dev", Commit: "unknown", Go: goruntime.Version(), Platform: goruntime.GOOS + "/" + goruntime.GOARCH,
		PluginProtocol: border.ProtocolVersion, Client: clientVersion.String(),
	}
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return i
	}
	if v := b.Main.Version; v != "" && v != "(devel)" {
		i.Version = v
	}
	for _, s := range b.Settings {
		switch {
		case s.Key == "vcs.revision":
			i.Commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			i.Commit += " (modified)"
		}
	}
	return i
}
