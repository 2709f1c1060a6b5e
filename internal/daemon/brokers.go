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

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/groupview"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/telemetry"
	"github.com/streamd/streamd/runtime"
)

// brokers are the clients, one a cluster. Not safe for concurrent use.
type brokers struct {
	log     *slog.Logger
	tel     *telemetry.Telemetry
	plugins func() []groupview.Plugin
	clients map[string]*rocketmq.Client
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

// add starts clients for the brokers that have none.
func (b *brokers) add(ctx context.Context, c *config.Config) error {
	for _, entry := range c.Brokers {
		if b.clients[entry.Name] != nil {
			continue
		}
		id, err := clientID(c.Member, c.Attributes)
		if err != nil {
			return fmt.Errorf("naming this member: %w", err)
		}
		client, err := rocketmq.New(rocketmq.Config{NameServers: entry.NameServers, Logger: b.log.With("broker", entry.Name), ClientID: id})
		if err != nil {
			return fmt.Errorf("broker %s: %w", entry.Name, err)
		}
		if err := client.Start(ctx); err != nil {
			return fmt.Errorf("broker %s: %w", entry.Name, err)
		}
		b.clients[entry.Name] = client
	}
	return nil
}

// keep closes the clients that c does not name.
func (b *brokers) keep(ctx context.Context, c *config.Config) error {
	var errs []error
	for name, client := range b.clients {
		if slices.ContainsFunc(c.Brokers, func(e config.Broker) bool { return e.Name == name }) {
			continue
		}
		delete(b.clients, name)
		if err := client.Close(ctx); err != nil {
			errs = append(errs, fmt.Errorf("closing the client of broker %s: %w", name, err))
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
