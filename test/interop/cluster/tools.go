package cluster

import (
	"context"
	"fmt"
)

// Tools returns the official tools and Java peers of version Main for a RocketMQ that somebody else runs: a cluster without
// servers of its own. dir is where they leave their files, jvm are further flags of their JVMs.
func Tools(ctx context.Context, dir, nameServer string, jvm ...string) (*Cluster, error) {
	lib, err := Lib(ctx, Main)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Version: Main, dir: dir, lib: lib, jvm: jvm, NameServers: NameServers{Addr: nameServer}}
	if err := makeHome(c.toolsHome()); err != nil {
		return nil, fmt.Errorf("making the home of the tools: %w", err)
	}
	return c, nil
}

// FreePort returns a port of the loopback that is free now and that no outgoing connection takes.
func FreePort(ctx context.Context) (int, error) { return freePorts(ctx, 1) }
