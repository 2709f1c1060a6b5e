package demo

import (
	"fmt"
	"os"
	"path/filepath"
)

// next lists what to type while the demo runs: each line that is indented most works as it stands, in the folder the demo was
// started in. Nothing stands behind a command: not every shell takes comments there.
func (d *demo) next() []string {
	streamd, orders := d.o.streamd(), d.o.orders()
	where, err := os.Getwd()
	if err != nil {
		where = "this folder"
	}
	lines := []string{
		"",
		"  Meanwhile, in another terminal, in " + where,
		"    who has which queue, how far, and why something waits:",
		fmt.Sprintf("      %s group status %s -n %s", streamd, group, d.address),
	}
	if l := d.stories.example(); l != nil {
		lines = append(lines,
			"    the attempts of "+l.order+", in one trace:",
			fmt.Sprintf("      grep -h %s %s", l.trace, filepath.Join(d.dir, "m*.log")))
	}
	lines = append(lines,
		"    an order of your own:",
		fmt.Sprintf(`      echo '{"body":{"id":"MINE-1","amount":9.5},"keys":["MINE-1"]}' | %s produce -n %s -t %s --json`, streamd, d.address, topic),
		"    the handler alone, without a broker:",
		fmt.Sprintf(`      echo '{"body":{"id":"MINE-2","amount":9.5}}' | %s plugin try %s`, streamd, orders),
		"    is the config right?",
		fmt.Sprintf("      %s validate -c %s --plugins", streamd, d.o.Config))
	if d.pid > 0 {
		lines = append(lines,
			"    kill the plugin of m1: it is started again, and nothing is lost:",
			fmt.Sprintf("      kill -9 %d", d.pid))
	}
	if addr, err := d.members[0].admin(); err == nil {
		lines = append(lines, fmt.Sprintf("  m1 tells about itself at http://%s/api/v1/status and /metrics", addr))
	}
	return append(lines, fmt.Sprintf("  The config is %s, the logs are in %s. Ctrl-C drains and sums up; twice stops at once.", d.o.Config, d.dir), "")
}
