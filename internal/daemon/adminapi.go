package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"github.com/streamd/streamd/internal/admin"
	"github.com/streamd/streamd/internal/buildinfo"
	"github.com/streamd/streamd/internal/config"
)

// adminSources is what the admin listener shows and does.
func (d *daemon) adminSources(c *config.Config) admin.Sources {
	if host, _, err := net.SplitHostPort(c.Admin.Listen); err == nil && !local(host) {
		d.log.Warn("the admin listener is open to other machines: whoever reaches it reads status and metrics", "key", "admin.listen", "address", c.Admin.Listen)
	}
	return admin.Sources{
		Metrics: d.telemetry.Handler(), Status: d.cleanStatus, Version: buildinfo.Read(), Token: c.Admin.Token, Reload: d.askReload,
	}
}

func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// cleanStatus is the status without secrets: what plugins and brokers said stands in it.
func (d *daemon) cleanStatus() any {
	text, err := json.Marshal(d.status())
	if err != nil {
		return map[string]string{"error": fmt.Sprintf("rendering the status: %v", err)}
	}
	return json.RawMessage(d.logging.clean(string(text)))
}

// errBusy answers a wish for a reload that cannot be begun.
var errBusy = errors.New("streamd starts, or reloads already; ask again in a moment")

// askReload has the loop reload, and returns how that went. The loop answers no more once streamd stops, and neither does the
// listener then, which ends ctx.
func (d *daemon) askReload(ctx context.Context) error {
	answer := make(chan error, 1)
	select {
	case d.asks <- answer:
	case <-ctx.Done():
		return context.Cause(ctx) //nolint:wrapcheck // nobody reads it
	}
	select {
	case err := <-answer:
		switch {
		case err == nil, errors.Is(err, errUnchanged):
			return nil
		case errors.Is(err, errBusy):
			return err
		}
		return d.logging.cleanErr(fmt.Errorf("reload refused; the running config stays in force: %w", err))
	case <-ctx.Done():
		return context.Cause(ctx) //nolint:wrapcheck // as above
	}
}
