package pluginhost

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/streamd/streamd/internal/border"
)

// coreVersion is go-plugin's own.
const coreVersion = "1"

// handshake is the one line that a plugin prints.
type handshake struct {
	network, address string
	cert             bool
}

// parseHandshake reads a handshake line: core|version|network|address|protocol|certificate. ok is false when the line is
// something else: output that does not belong on stdout.
func parseHandshake(line string) (h handshake, ok bool, err error) {
	fields := strings.Split(strings.TrimSpace(line), "|")
	if len(fields) < 4 {
		return h, false, nil
	}
	if !isNumber(fields[0]) || !isNumber(fields[1]) {
		return h, false, nil
	}
	if fields[0] != coreVersion {
		return h, true, fmt.Errorf("it speaks go-plugin's core version %s, this host %s; build the plugin with a go-plugin v1 library", fields[0], coreVersion)
	}
	if version, err := strconv.Atoi(fields[1]); err != nil || !slices.Contains(supportedVersions(), version) {
		return h, true, fmt.Errorf("it speaks version %s of the plugin protocol, this streamd speaks %v; install a build of the plugin for that version, or upgrade the older side", fields[1], supportedVersions())
	}
	h.network, h.address = fields[2], fields[3]
	if len(fields) < 5 || fields[4] != "grpc" {
		return h, true, fmt.Errorf("it does not serve gRPC; streamd's plugins do: build it with sdk/serve, or set the protocol field of its handshake to grpc")
	}
	h.cert = len(fields) > 5 && len(fields[5]) > 50
	return h, true, nil
}

// supportedVersions are the majors that this host speaks.
func supportedVersions() []int { return []int{border.ProtocolVersion} }

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// check compares where the plugin listens with what was asked of it.
func (h handshake) check(tls bool, dir string) error {
	switch {
	case h.network == "unix" && !strings.HasPrefix(h.address, dir+"/"):
		return fmt.Errorf("it listens on %s, outside its private directory; it must honor PLUGIN_UNIX_SOCKET_DIR", h.address)
	case h.network == "tcp" && !tls:
		return fmt.Errorf("it listens on tcp %s with tls: off, where any local user could call it; use a unix socket or remove tls: off", h.address)
	case h.network != "unix" && h.network != "tcp":
		return fmt.Errorf("it listens on network %q; unix and tcp are known", h.network)
	case tls && !h.cert:
		return fmt.Errorf("it sent no certificate, so it does not take part in automatic TLS; set tls: off for this plugin (its socket directory is private) or use an SDK that does")
	case !tls && h.cert:
		return fmt.Errorf("it insists on TLS, which is off for it; remove tls: off")
	}
	return nil
}
