package rocketmq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Members lists the client ids of a group as one broker of the topic sees them (38): a random one, and another when that
// one does not answer or knows nobody. Ids may occur twice (a member that reconnected). ErrNoMembers when every broker that
// answered knows no online member, and ErrGroupNotFound when that is because a broker does not know the group that this
// client has joined; any other error says nothing about the members.
func (c *Client) Members(ctx context.Context, group, topic string) ([]string, error) {
	r, err := c.route(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("listing the members of %s: %w", group, err)
	}
	err = ErrNoBroker
	for _, broker := range c.shuffled(r) {
		var list wire.ConsumerList
		asked := c.table(ctx, request{
			broker: broker, topic: topic, header: &wire.ConsumerListRequest{Group: group}, fast: true, anyReplica: true,
		}, &list)
		if asked == nil && len(list.ConsumerIDs) > 0 {
			return list.ConsumerIDs, nil
		}
		err = worse(err, memberError(asked))
		if ctx.Err() != nil {
			break
		}
	}
	err = c.whyNoMembers(ctx, group, topic, r, err)
	return nil, fmt.Errorf("listing the members of %s through the brokers of %s: %w", group, topic, err)
}

// memberError tells "nobody is online" from "could not be asked". Brokers have no code for it.
func memberError(err error) error {
	var resp *ResponseError
	if err == nil || errors.As(err, &resp) && resp.Code == wire.RespSystemError && strings.Contains(resp.Remark, "no consumer for this group") {
		return ErrNoMembers
	}
	return err
}

// worse keeps the error that knows more: a failure to ask hides what others answered only if nobody answered.
func worse(before, now error) error {
	if errors.Is(before, ErrNoMembers) || errors.Is(before, ErrMemberOffline) {
		return before
	}
	return now
}

// shuffled lists a route's brokers in random order.
func (c *Client) shuffled(r *route) []string {
	names := slices.Sorted(maps.Keys(r.brokers))
	for i := len(names) - 1; i > 0; i-- {
		j := int(c.cfg.Rand() * float64(i+1))
		names[i], names[j] = names[j], names[i]
	}
	return names
}

// peerInfoTimeout is the broker's own 10 s for a member's answer to 307, and the way (remoting-protocol.md 2.8).
const peerInfoTimeout = 12 * time.Second

// PeerInfo asks a member for its running info (307). A broker that the member is connected to passes the question on; the
// brokers of the group's retry topic are tried, then all others. ErrMemberOffline when no broker knows the member; a
// *ResponseError with 207 when it did not answer its broker within 10 s.
func (c *Client) PeerInfo(ctx context.Context, group, clientID string) (*wire.ConsumerRunningInfo, error) {
	if err := c.running(); err != nil {
		return nil, err
	}
	err := ErrNoBroker
	for _, broker := range c.groupBrokers(ctx, group) {
		var info wire.ConsumerRunningInfo
		asked := c.table(ctx, request{
			broker: broker, header: &wire.RunningInfoRequest{Group: group, ClientID: clientID},
			within: peerInfoTimeout, fast: true, anyReplica: true,
		}, &info)
		if asked == nil {
			return c.changed(&info, c.plain), nil
		}
		var resp *ResponseError
		if errors.As(asked, &resp) && resp.Code != wire.RespSystemError {
			return nil, fmt.Errorf("asking member %s of %s: %w", clientID, group, asked)
		}
		if resp != nil && strings.Contains(resp.Remark, "not online") {
			asked = ErrMemberOffline
		}
		err = worse(err, asked)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("asking member %s of %s: %w", clientID, group, err)
}

// groupBrokers lists brokers by name: those of the group's retry topic first.
func (c *Client) groupBrokers(ctx context.Context, group string) []string {
	var names []string
	if r, err := c.routes.get(ctx, wire.RetryTopic(group)); err == nil {
		names = c.shuffled(r)
	}
	for _, to := range c.routes.all() {
		if !slices.Contains(names, to.Name) {
			names = append(names, to.Name)
		}
	}
	return names
}

// table asks a broker's master for a JSON body.
func (c *Client) table(ctx context.Context, r request, into any) error {
	body, err := c.bodyOf(ctx, r)
	if err != nil {
		return err
	}
	if err := wire.DecodeBody(body, into); err != nil {
		return fmt.Errorf("%w: reading the answer of %s to %s: %w", ErrProtocol, r.broker, r.header.RequestCode(), err)
	}
	return nil
}

// bodyOf returns the body of a successful answer, which is the caller's.
func (c *Client) bodyOf(ctx context.Context, r request) ([]byte, error) {
	reply, err := c.onMaster(ctx, r)
	if err != nil {
		return nil, err
	}
	defer reply.Release()
	return bytes.Clone(reply.Body), nil
}
