package daemon

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/groupview"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/telemetry"
	"github.com/streamd/streamd/runtime"
)

// brokers are the clients, one a cluster, and the brokers in this process. Not safe for concurrent use, but for status.
type brokers struct {
	log     *slog.Logger
	tel     *telemetry.Telemetry
	plugins func() []groupview.Plugin
	clients map[string]*rocketmq.Client
	trusts  map[string]*trust // by the names of clients
	traces  *msgtraces

	mu   sync.Mutex           // guards here for status: all else belongs to one goroutine at a time
	here map[string]*embedded // those that run in this process
}

// clientID is ip@pid#random, or the configured member's name in the place of the address, with the attributes behind.
func clientID(memberName string, attributes map[string]string) (string, error) {
	base, err := rocketmq.NewClientID()
	if err != nil {
		return "", err //nolint:wrapcheck // says what it made
	}
	if memberName != "" {
		var unique [8]byte
		rand.Read(unique[:]) // never fails: it ends the process instead
		base = fmt.Sprintf("%s@%d#%s", memberName, os.Getpid(), hex.EncodeToString(unique[:]))
	}
	return allocate.MemberID(base, attributes) //nolint:wrapcheck // says which id
}

// add starts the embedded brokers and the clients that c names and that do not run yet.
func (b *brokers) add(ctx context.Context, c *config.Config) error {
	for i := range c.Brokers {
		entry := &c.Brokers[i]
		if err := b.addEmbedded(ctx, c, entry); err != nil {
			return err // says which broker
		}
		if b.clients[entry.Name] != nil {
			continue
		}
		id, err := clientID(c.Member, c.Attributes)
		if err != nil {
			return fmt.Errorf("naming this member: %w", err)
		}
		cc, proof, err := clientConfig(entry, b.log.With("broker", entry.Name))
		if err != nil {
			return err // says which broker
		}
		cc.NameServers, cc.ClientID = b.servers(entry), id
		if err := b.connect(ctx, entry.Name, cc); err != nil {
			return fmt.Errorf("broker %s: %w", entry.Name, err)
		}
		b.trusts[entry.Name] = proof
	}
	return nil
}

// settle gives the brokers that ran before what c changes of them: the keys they are signed to with, from the next request on,
// and the topics of embedded ones. It comes when c can no longer be refused, since topics are never taken away: somebody may
// have written to them.
func (b *brokers) settle(ctx context.Context, c *config.Config) {
	for i := range c.Brokers {
		entry := &c.Brokers[i]
		if proof := b.trusts[entry.Name]; proof != nil {
			proof.use(entry)
		}
		running := b.here[entry.Name]
		if running == nil || entry.Embedded == nil {
			continue
		}
		b.mu.Lock()
		running.config = entry.Embedded
		b.mu.Unlock()
		for _, topic := range running.makeTopics(wantedTopics(c, entry)) {
			b.see(ctx, entry.Name, topic)
		}
	}
}

// see has a client look for a topic that was just made: a stream may wait for it, and would look again in 30 s. Twice, since it
// may share an answer to a question of before.
func (b *brokers) see(ctx context.Context, broker, topic string) {
	var err error
	for range 2 {
		if _, err = b.clients[broker].Queues(ctx, topic); err == nil {
			return
		}
	}
	b.log.Debug("a new topic is not seen yet", "broker", broker, "topic", topic, "error", err)
}

// wantedTopics are those that streams want of an embedded broker. Only in a trial are topics made because a stream wants them:
// elsewhere a misspelled one has to be seen.
func wantedTopics(c *config.Config, entry *config.Broker) []string {
	if !entry.Embedded.Dev {
		return nil
	}
	return c.TopicsOf(entry.Name)
}

// connect starts the client of a cluster, and the writing of its message trace.
func (b *brokers) connect(ctx context.Context, name string, c rocketmq.Config) error {
	tracer := b.traces.open(name)
	if tracer != nil {
		c.Sent = tracer.Sent
	}
	client, err := rocketmq.New(c)
	if err == nil {
		err = client.Start(ctx)
	}
	if err != nil {
		b.traces.close(ctx, name)
		return err //nolint:wrapcheck // the client says what it did
	}
	if tracer != nil {
		tracer.Start(client) //nolint:contextcheck // what it writes outlives the start; Close bounds it
	}
	b.clients[name] = client
	return nil
}

// addEmbedded starts a broker in this process, with its topics, unless it runs.
func (b *brokers) addEmbedded(ctx context.Context, c *config.Config, entry *config.Broker) error {
	if entry.Embedded == nil || b.here[entry.Name] != nil {
		return nil
	}
	started, err := startEmbedded(ctx, entry.Embedded, "broker "+entry.Name, wantedTopics(c, entry), b.log.With("broker", entry.Name))
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.here[entry.Name] = started
	b.mu.Unlock()
	started.tell(b.log, entry.Name)
	return nil
}

// servers are the name servers of a broker: an embedded one's address is known once it listens.
func (b *brokers) servers(entry *config.Broker) []string {
	if running := b.here[entry.Name]; running != nil {
		return []string{running.address()}
	}
	return entry.NameServers
}

// status tells about the brokers of c. Safe for concurrent use.
func (b *brokers) status(c *config.Config) []BrokerStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]BrokerStatus, 0, len(c.Brokers))
	for i := range c.Brokers {
		entry := &c.Brokers[i]
		s := BrokerStatus{Name: entry.Name, NameServers: b.servers(entry)}
		if running := b.here[entry.Name]; running != nil {
			s.Embedded = running.status()
		}
		if t := b.traces.of(entry.Name); t != nil {
			counts := t.Counts()
			s.MessageTrace = &counts
		}
		out = append(out, s)
	}
	return out
}

// reread reads again, for the brokers of c that run, who is let in to embedded ones and the certificates of clients, and
// changes nothing. use puts what was read in force, and undo takes that back.
func (b *brokers) reread(c *config.Config) (use func() (undo func()), err error) {
	var steps []func() (undo func())
	var errs []error
	for i := range c.Brokers {
		entry := &c.Brokers[i]
		if proof := b.trusts[entry.Name]; proof != nil && proof.files != nil {
			fresh, err := proof.files.read()
			if err != nil {
				errs = append(errs, unusable(err, "tls of broker "+entry.Name, entry.Written, sameKey))
			}
			steps = append(steps, func() func() {
				before := proof.files.use(fresh)
				return func() { proof.files.use(before) }
			})
		}
		if running := b.here[entry.Name]; running != nil && entry.Embedded != nil {
			fresh, err := readEntry(entry.Embedded, running.who)
			errs = append(errs, err)
			steps = append(steps, func() func() {
				before := running.use(fresh)
				return func() { running.use(before) }
			})
		}
	}
	return func() func() {
		undos := make([]func(), len(steps))
		for i, step := range steps {
			undos[i] = step()
		}
		return func() {
			for _, undo := range undos {
				undo()
			}
		}
	}, errors.Join(errs...)
}

// keep closes the clients, and then the embedded brokers, that c does not name.
func (b *brokers) keep(ctx context.Context, c *config.Config) error {
	var errs []error
	for name, client := range b.clients {
		if slices.ContainsFunc(c.Brokers, func(e config.Broker) bool { return e.Name == name }) {
			continue
		}
		delete(b.clients, name)
		delete(b.trusts, name)
		b.traces.close(ctx, name)
		if err := client.Close(ctx); err != nil {
			errs = append(errs, fmt.Errorf("closing the client of broker %s: %w", name, err))
		}
	}
	for name, running := range b.here {
		if slices.ContainsFunc(c.Brokers, func(e config.Broker) bool { return e.Name == name }) {
			continue
		}
		b.mu.Lock()
		delete(b.here, name)
		b.mu.Unlock()
		if err := running.Close(); err != nil {
			errs = append(errs, fmt.Errorf("stopping the embedded broker %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// seams are the clients as the engine sees them: measured, and telling about the plugins here.
func (b *brokers) seams() map[string]runtime.Broker {
	out := make(map[string]runtime.Broker, len(b.clients))
	for name, client := range b.clients {
		out[name] = member{b.tel.Broker(client), b.plugins}
	}
	return out
}
