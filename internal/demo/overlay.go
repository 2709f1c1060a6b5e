package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/streamd/streamd/internal/exitcode"
)

// overlay is what the demo changes of the config for one member.
const overlay = `# What the demo changes of %s for the member %s.
member: %s
state_dir: %q
log: {format: json}
brokers:
  - {name: %s, %s}
plugins:
  - {name: %s, command: [%q]}
handlers:
  - {name: %s, config: {journal: %q}}
`

// writeOverlay writes a member's overlay and returns its path.
func (d *demo) writeOverlay(m *member) (string, error) {
	where := fmt.Sprintf("name_servers: [%q], embedded: null", d.address)
	if m.holdsBroker {
		where = fmt.Sprintf("embedded: {listen: %q, data_dir: %q}", d.address, filepath.Join(d.dir, "data"))
	}
	orders, err := filepath.Abs(d.o.orders())
	if err != nil {
		return "", fmt.Errorf("finding the sample plugin: %w", err)
	}
	text := fmt.Sprintf(overlay, d.o.Config, m.name, m.name, m.state(), broker, where, plugin, orders, handler, m.journal.path)
	path := filepath.Join(d.dir, m.name+".yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("writing what the demo changes: %w", err)
	}
	return path, nil
}

// wanted is where RocketMQ people expect a name server; portTries how many ports after it are tried.
const (
	wanted    = 9876
	portTries = 100
)

// freeAddress finds the address for the embedded broker, and whether it is the usual one.
func freeAddress(ctx context.Context, first int) (address string, usual bool, err error) {
	var lc net.ListenConfig
	for port := first; port < first+portTries; port++ {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		l, err := lc.Listen(ctx, "tcp", address)
		switch {
		case err == nil:
			_ = l.Close() // nothing was accepted
			return address, port == first, nil
		case !errors.Is(err, syscall.EADDRINUSE):
			return "", false, exitcode.With(exitcode.Environment, fmt.Errorf("looking for a port: %w", err))
		}
	}
	return "", false, exitcode.With(exitcode.Environment, fmt.Errorf("the ports %d to %d of 127.0.0.1 are all taken: stop what uses one of them", first, first+portTries-1))
}
