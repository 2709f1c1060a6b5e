package main

import (
	"fmt"
	"path/filepath"

	"github.com/streamd/streamd/test/interop/cluster"
)

// next lists what to type while the demo runs; each line works as it stands, in the repository's folder.
func (d *demo) next() []string {
	bin := d.o.bin
	if rel, err := filepath.Rel(cluster.Root(), bin); err == nil && filepath.IsLocal(rel) {
		bin = rel
	}
	lines := []string{
		"", "  Meanwhile, in another terminal, in " + cluster.Root() + ":",
		fmt.Sprintf("    %s/streamd group status %s -n %s", bin, group, d.cluster.Addr),
		fmt.Sprintf("    echo '{\"body\":{\"id\":\"A-1\",\"amount\":9.5}}' | %s/streamd plugin try %s/plugins/orders", bin, bin),
		fmt.Sprintf("    %s/streamd plugin describe %s/plugins/orders", bin, bin),
		fmt.Sprintf("    %s/streamd validate -c %s --print", bin, d.config),
	}
	if addr, err := d.members[0].admin(); err == nil {
		lines = append(lines, fmt.Sprintf("    curl -s http://%s/api/v1/status", addr))
	}
	if d.pid > 0 {
		lines = append(lines, fmt.Sprintf("    kill -9 %d      # the orders plugin of m1: it is started again, nothing is lost", d.pid))
	}
	return append(lines, "  The config is "+d.config+"; Ctrl-C drains and sums up.", "")
}
