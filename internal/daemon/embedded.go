package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/exitcode"
)

// embedded is a broker in this process.
type embedded struct {
	*broker.Broker
	*guard

	config *config.Embedded
}

// startEmbedded starts a broker and makes its topics. Errors say whose it is, unless who is empty, and are the environment's: port, folder, name.
func startEmbedded(ctx context.Context, e *config.Embedded, who string, topics []string, log *slog.Logger) (*embedded, error) {
	g, err := newGuard(e, who)
	if err != nil {
		return nil, err
	}
	c := brokerConfig(e, log)
	c.Access, c.TLS = g.access(), g.secure()
	c.Listen = func(address string) (net.Listener, error) { return listenBroker(ctx, address, e.Dev) }
	b := &embedded{broker.New(c), g, e}
	if err := b.Start(); err != nil { //nolint:contextcheck // looking up a name has its own limit
		return nil, exitcode.With(exitcode.Environment, errors.Join(plainly(of(who, err), e), b.Close()))
	}
	b.makeTopics(topics)
	return b, nil
}

// brokerConfig is what the config says of a broker, but for who is let in.
func brokerConfig(e *config.Embedded, log *slog.Logger) broker.Config {
	c := broker.Config{
		Address: e.Listen, Advertise: e.Advertise, DataDir: e.DataDir, DelayLevels: e.DelayLevels,
		RetainAge: e.Retention.Age, RetainBytes: int64(e.Retention.Size), Logger: log,
	}
	if e.Flush == "async" {
		c.Flush = store.FlushAsync
	}
	return c
}

// listenBroker listens where the broker shall be. One of a trial takes the next free port when its own is taken.
func listenBroker(ctx context.Context, address string, dev bool) (net.Listener, error) {
	if dev {
		return listenNear(ctx, address)
	}
	return (&net.ListenConfig{}).Listen(ctx, "tcp", address) //nolint:wrapcheck // the broker says what it listens for
}

// plainly says what to do about an address, or a folder that is none; the store says it of its other faults.
func plainly(err error, e *config.Embedded) error {
	if _, network := errors.AsType[*net.OpError](err); network {
		return e.Written.Place(advised(err, aboutPort(err, e.Key("listen"), e.Listen)), "listen")
	}
	if _, lookup := errors.AsType[*net.DNSError](err); lookup {
		return e.Written.Place(err, "advertise")
	}
	if errors.Is(err, syscall.ENOTDIR) {
		err = advised(err, aboutFolder(err, e.Key("data_dir")))
	}
	return e.Written.Place(err, "data_dir")
}

// makeTopics makes the topics of the config and those given, and adds queues to those that have too few. It takes none away. It
// returns those that it made.
func (b *embedded) makeTopics(more []string) (made []string) {
	wanted := slices.Clone(b.config.Topics)
	for _, name := range more {
		if !slices.ContainsFunc(wanted, func(t config.Topic) bool { return t.Name == name }) {
			wanted = append(wanted, config.Topic{Name: name, Queues: devQueues})
		}
	}
	for _, t := range wanted {
		queues := int32(t.Queues) //nolint:gosec // at most 1024
		have, ok := b.Topic(t.Name)
		switch {
		case !ok:
			b.CreateTopic(t.Name, queues)
			made = append(made, t.Name)
		case have.WriteQueues < queues:
			have.WriteQueues, have.ReadQueues = queues, max(have.ReadQueues, queues)
			b.PutTopic(have)
		}
	}
	return made
}

// devQueues is how many queues the topics of a trial get.
const devQueues = 8

// address is what clients write as their name server.
func (b *embedded) address() string { return b.Address() }

// listening is where the listener is.
func (b *embedded) listening() string {
	if b.config.Advertise == "" {
		return b.Address()
	}
	return b.config.Listen
}

// data says where the messages are, and when one counts as stored.
func (b *embedded) data() string {
	if b.config.DataDir == "" {
		return "in memory: it goes with this process"
	}
	text := b.config.DataDir + ", flush " + b.config.Flush
	if b.config.Retention.Age > 0 {
		text += ", for " + b.config.Retention.Age.String()
	}
	if b.config.Retention.Size > 0 {
		text += ", at most " + b.config.Retention.Size.String()
	}
	return text
}

// tell logs that the broker is there.
func (b *embedded) tell(log *slog.Logger, name string) {
	attrs := []any{"name", name, "address", b.address(), "data", b.data(), "access", b.describe()}
	if b.config.Dev {
		attrs = append(attrs, "for", "development only")
	}
	if len(b.config.DelayLevels) > 0 {
		attrs = append(attrs, "delay_levels", "changed")
	}
	log.Info("the embedded broker listens", attrs...)
}

// status is what people are told of the broker.
func (b *embedded) status() *EmbeddedStatus {
	return &EmbeddedStatus{
		Address: b.address(), Listen: b.listening(), Data: b.data(), Access: b.describe(), Dev: b.config.Dev, DelayLevels: texts(b.config.DelayLevels),
		Topics: len(b.Topics()), Connections: b.Connections(), HeldPulls: b.HeldPulls(), Delayed: b.Delayed(),
	}
}

func texts(levels []time.Duration) []string {
	var out []string
	for _, l := range levels {
		out = append(out, l.String())
	}
	return out
}

// tellDev says, in a trial, what of the config is not in force.
func (d *daemon) tellDev() {
	for _, was := range d.loaded.Load().Replaced {
		d.log.Warn("for development: an embedded broker takes the place of what the config says", "replaced", was)
	}
}
