package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// groups are the groups that this client is a member of.
type groups struct {
	mu    sync.Mutex
	specs map[string]GroupSpec
}

func (g *groups) add(spec GroupSpec) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, taken := g.specs[spec.Name]; taken {
		return fmt.Errorf("%w: %s; a client is a member of a group once", ErrDuplicateGroup, spec.Name)
	}
	if g.specs == nil {
		g.specs = map[string]GroupSpec{}
	}
	g.specs[spec.Name] = spec
	return nil
}

func (g *groups) remove(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, there := g.specs[name]
	delete(g.specs, name)
	return there
}

func (g *groups) get(name string) (GroupSpec, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	spec, ok := g.specs[name]
	return spec, ok
}

func (g *groups) joined(name string) bool {
	_, ok := g.get(name)
	return ok
}

func (g *groups) any() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.specs) > 0
}

// all returns the specs by name.
func (g *groups) all() []GroupSpec {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := make([]GroupSpec, 0, len(g.specs))
	for _, spec := range g.specs {
		list = append(list, spec)
	}
	slices.SortFunc(list, func(a, b GroupSpec) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return list
}

// Join makes this client a member of a group: it heartbeats to the brokers of the subscribed topics, and from then on
// every Config.HeartbeatInterval and on each new connection, until Leave. When brokers are known and none of them took the
// heartbeat, or no name server answers, it fails and the group is not joined; it can be tried again. Topics that no
// name server knows are no failure: their brokers hear of the group when they appear.
func (c *Client) Join(ctx context.Context, spec GroupSpec) error {
	if err := c.running(); err != nil {
		return err
	}
	if err := wire.ValidateGroup(spec.Name); err != nil {
		return fmt.Errorf("joining a group: %w", err)
	}
	if _, err := subscriptionData(spec); err != nil {
		return fmt.Errorf("joining group %s: %w", spec.Name, err)
	}
	if err := c.groups.add(spec); err != nil {
		return err
	}
	if err := c.introduceGroup(ctx, spec); err != nil {
		c.groups.remove(spec.Name)
		return fmt.Errorf("joining group %s: %w", spec.Name, err)
	}
	return nil
}

func (c *Client) introduceGroup(ctx context.Context, spec GroupSpec) error {
	subscriptions := slices.Clone(spec.Subscriptions())
	if !spec.Broadcasting {
		subscriptions = append(subscriptions, Subscription{Topic: wire.RetryTopic(spec.Name)})
	}
	for _, s := range subscriptions { // whatever is wrong with a topic of other members, it is not read here
		if _, err := c.routes.get(ctx, s.Topic); err != nil && !s.Foreign && !errors.Is(err, ErrTopicNotFound) {
			return err
		}
	}
	results := c.beatAll(ctx)
	var failed error
	for _, err := range results {
		others, split := errors.AsType[refusedGroupsError](err)
		if err == nil || split && others[spec.Name] == nil {
			return nil
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// Leave unregisters the group at every broker (35) and waits for their words. The group is left whatever the result: a
// broker that could not be told forgets the member when the connection closes, or after 120 s.
func (c *Client) Leave(ctx context.Context, group string) error {
	if !c.groups.remove(group) {
		return fmt.Errorf("leaving group %s: %w", group, ErrNotJoined)
	}
	c.suggested.forget(group)
	if err := c.running(); err != nil {
		return err
	}
	if err := c.unregister(ctx, &wire.UnregisterClientRequest{ClientID: c.cfg.ClientID, ConsumerGroup: wire.Some(group)}); err != nil {
		return fmt.Errorf("leaving group %s: %w", group, err)
	}
	return nil
}

// leaveAll is Leave for all groups of a client that closes.
func (c *Client) leaveAll(ctx context.Context) error {
	var failed error
	for _, spec := range c.groups.all() {
		c.groups.remove(spec.Name)
		failed = errors.Join(failed, c.unregister(ctx, &wire.UnregisterClientRequest{
			ClientID: c.cfg.ClientID, ConsumerGroup: wire.Some(spec.Name),
		}))
	}
	return failed
}

// unregister tells every broker that a connection stands to, also one that nobody uses yet: its first heartbeat may have
// named the group. The others know no member of ours. The group is taken out before: what is on its way to a broker may name it and
// is waited for there, since it must not be overtaken, and nowhere else.
func (c *Client) unregister(ctx context.Context, header *wire.UnregisterClientRequest) error {
	results := forEach(c.routes.all(), func(to BrokerAddr) error {
		one := c.brokers.known(to.Addr)
		if one == nil {
			return nil
		}
		if err := one.beats.ended(ctx); err != nil {
			return fmt.Errorf("waiting for the heartbeat on its way to broker %s (replica %d): %w", to.Name, to.ID, err)
		}
		one.told.clear() // it forgets what it was told of the group
		conn := one.introduced()
		if conn == nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, c.cfg.CallTimeout)
		defer cancel()
		r := request{header: header}
		reply, err := call(ctx, conn, r)
		if err != nil {
			return err
		}
		if err := c.refusal(r, to, reply); err != nil {
			return err
		}
		reply.Release()
		return nil
	})
	return errors.Join(results...)
}

// fanOut is how many brokers are spoken to at once: more than a cluster has, so that those which are silent hold nobody back.
const fanOut = 256

// forEach runs f for all items, side by side, and returns the results in order.
func forEach[T any](items []T, f func(T) error) []error {
	results := make([]error, len(items))
	limit := make(chan struct{}, fanOut)
	var wg sync.WaitGroup
	for i, item := range items {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			results[i] = f(item)
		})
	}
	wg.Wait()
	return results
}
