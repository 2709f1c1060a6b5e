package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/uses"
)

// needsRestart lists what differs and cannot be changed in a running process.
func needsRestart(old, c *config.Config) []string {
	var keys []string
	for _, k := range []struct {
		key  string
		same bool
	}{
		{"state_dir", old.StateDir == c.StateDir},
		{"member", old.Member == c.Member},
		{"attributes", maps.Equal(old.Attributes, c.Attributes)},
		{"admin", old.Admin == c.Admin},
		{"health.listen", old.Health == c.Health},
		{"log.format", old.Log.Format == c.Log.Format},
		{"telemetry", old.Telemetry == c.Telemetry},
	} {
		if !k.same {
			keys = append(keys, k.key)
		}
	}
	for _, b := range c.Brokers {
		i := slices.IndexFunc(old.Brokers, func(o config.Broker) bool { return o.Name == b.Name })
		if i < 0 {
			continue
		}
		switch o := &old.Brokers[i]; {
		case !slices.Equal(o.NameServers, b.NameServers):
			keys = append(keys, "brokers["+b.Name+"].name_servers")
		case !sameEmbedded(o.Embedded, b.Embedded):
			keys = append(keys, "brokers["+b.Name+"].embedded")
		case o.AccessKey != b.AccessKey || !reflect.DeepEqual(o.TLS, b.TLS) || o.Namespace != b.Namespace || o.NamespaceV2 != b.NamespaceV2:
			keys = append(keys, "brokers["+b.Name+"].access_key, tls or namespace")
		case o.HeartbeatV2 != b.HeartbeatV2:
			keys = append(keys, "brokers["+b.Name+"].heartbeat_v2")
		}
	}
	return keys
}

// sameEmbedded compares all but the topics, which a running broker can be given more of.
func sameEmbedded(a, b *config.Embedded) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.Topics, y.Topics = nil, nil
	return reflect.DeepEqual(x, y)
}

// errUnchanged says that a reload found what is in force already.
var errUnchanged = errors.New("the config is unchanged")

// reload reads the config anew and applies what changed: all of it is validated first, new parts run before old ones
// drain, and after an error the running config is in force as it was.
func (d *daemon) reload(ctx context.Context) error {
	loaded, err := d.options.Load()
	if err != nil {
		return err
	}
	old, c := d.loaded.Load().Config, loaded.Config
	if keys := needsRestart(old, c); len(keys) > 0 {
		return fmt.Errorf("%s changed: that needs a restart; nothing was applied", strings.Join(keys, ", "))
	}
	if err := check(c); err != nil {
		return err
	}
	if err := d.brokers.reread(); err != nil {
		return err
	}
	if sameConfig(old, c) {
		return errUnchanged
	}
	next, undo, err := d.prepare(ctx, old, c)
	if err != nil {
		return err
	}
	if err := d.engine.Apply(ctx, next); err != nil {
		undo(context.WithoutCancel(ctx))
		return errors.Join(err, d.brokers.keep(context.WithoutCancel(ctx), old))
	}
	d.brokers.rekey(c)
	d.plugins.drop(c, old) //nolint:contextcheck // draining has its own limit
	if err := d.brokers.keep(ctx, c); err != nil {
		d.log.Warn("the config is applied, and something of the old one did not end cleanly", "error", err)
	}
	d.loaded.Store(loaded)
	return d.logging.apply(c.Log.Level, loaded.Secrets)
}

// sameConfig compares what is in force, not how it was written.
func sameConfig(a, b *config.Config) bool {
	x, y := *a, *b
	x.Handlers, y.Handlers, x.Streams, y.Streams = nil, nil, nil, nil
	return reflect.DeepEqual(x, y) &&
		slices.EqualFunc(a.Handlers, b.Handlers, func(p, q config.Handler) bool { return uses.OfHandler(&p).Same(uses.OfHandler(&q)) }) &&
		slices.EqualFunc(a.Streams, b.Streams, sameStream)
}

func sameStream(a, b config.Stream) bool {
	if !a.Allocation.Config.Equal(b.Allocation.Config) {
		return false
	}
	a.Allocation.Config, b.Allocation.Config = config.Raw{}, config.Raw{}
	a.Written, b.Written = config.Entry{}, config.Entry{}
	return reflect.DeepEqual(a, b)
}
