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
		{"log.format", old.Log.Format == c.Log.Format},
	} {
		if !k.same {
			keys = append(keys, k.key)
		}
	}
	keys = append(keys, changedKeys("admin", old.Admin, c.Admin)...)
	keys = append(keys, changedKeys("health", old.Health, c.Health)...)
	keys = append(keys, changedKeys("telemetry", old.Telemetry, c.Telemetry)...)
	for _, b := range c.Brokers {
		i := slices.IndexFunc(old.Brokers, func(o config.Broker) bool { return o.Name == b.Name })
		if i < 0 {
			continue
		}
		keys = append(keys, changedKeys("brokers["+b.Name+"]", fixed(old.Brokers[i]), fixed(b))...)
	}
	return keys
}

// fixed is what cannot change of a broker that runs: all but its keys, and the topics of an embedded one, which can be given
// more.
func fixed(b config.Broker) config.Broker {
	b.AccessKey, b.SecretKey = "", ""
	if b.Embedded != nil {
		e := *b.Embedded
		e.Topics = nil
		b.Embedded = &e
	}
	return b
}

// changedKeys names the keys of a section that differ.
func changedKeys(name string, old, next any) []string {
	return changedBelow(name, reflect.ValueOf(old), reflect.ValueOf(next))
}

func changedBelow(name string, a, b reflect.Value) []string {
	if a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil() {
		a, b = a.Elem(), b.Elem()
	}
	if a.Kind() != reflect.Struct {
		if reflect.DeepEqual(a.Interface(), b.Interface()) {
			return nil
		}
		return []string{name}
	}
	var keys []string
	for i := range a.NumField() {
		if key := a.Type().Field(i).Tag.Get("yaml"); key != "-" {
			keys = append(keys, changedBelow(name+"."+key, a.Field(i), b.Field(i))...)
		}
	}
	return keys
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
	// Plugins that come speak before the config is in force, those that go speak after it, and so does a refusal.
	d.logging.learn(slices.Concat(d.loaded.Load().Secrets, loaded.Secrets))
	if keys := needsRestart(old, c); len(keys) > 0 {
		return fmt.Errorf("%s changed: that needs a restart; nothing was applied", strings.Join(keys, ", "))
	}
	if err := check(c); err != nil {
		return err
	}
	use, err := d.brokers.reread(c)
	if err != nil {
		return err
	}
	d.plugins.host.Retry() // whoever reloads may have mended what a plugin failed of, with the config as it was
	if sameConfig(old, c) {
		d.plugins.wanted.Store(c) // lines may have moved
		use()
		return errUnchanged
	}
	d.warnOf(loaded)
	next, undo, err := d.prepare(ctx, old, c)
	if err != nil {
		return err
	}
	unuse := use() // before: a new stream may need a right that a file brings
	if err := d.engine.Apply(ctx, next); err != nil {
		if ctx.Err() != nil {
			return err // streamd stops, and gives back whatever there is
		}
		unuse()
		undo(context.WithoutCancel(ctx))
		return errors.Join(err, d.brokers.keep(context.WithoutCancel(ctx), old))
	}
	d.brokers.settle(ctx, c) // all that cannot be taken back comes when nothing can be refused any more
	d.plugins.drop(c, old)   //nolint:contextcheck // draining has its own limit
	if err := d.brokers.keep(ctx, c); err != nil {
		d.log.Warn("the config is applied, and something of the old one did not end cleanly", "error", err)
	}
	d.loaded.Store(loaded)
	return d.logging.apply(c.Log.Level, loaded.Secrets)
}

// sameConfig compares what is in force, not how it was written.
func sameConfig(a, b *config.Config) bool {
	x, y := a.Unplaced(), b.Unplaced()
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
