package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Masters lists the masters that the name servers know (106), by broker name.
func (c *Client) Masters(ctx context.Context) ([]BrokerAddr, error) {
	info, err := c.ClusterInfo(ctx)
	if err != nil {
		return nil, err
	}
	var masters []BrokerAddr
	for _, name := range slices.Sorted(maps.Keys(info.Brokers)) {
		if addr, ok := info.Brokers[name].Addrs[masterID]; ok {
			masters = append(masters, BrokerAddr{Name: name, Addr: dialable(addr)})
		}
	}
	return masters, nil
}

// GroupConfig reads a group's settings at one broker (352; before 5.0, which does not know that, 201). ErrGroupNotFound
// when the broker has none.
func (c *Client) GroupConfig(ctx context.Context, at BrokerAddr, group string) (*wire.SubscriptionGroup, error) {
	var g wire.SubscriptionGroup
	err := c.tableAt(ctx, at, &wire.GroupRequest{Op: wire.ReqGetSubscriptionGroupConfig, Group: group, Common: named(at.Name)}, &g)
	if resp, refused := errors.AsType[*ResponseError](err); refused {
		switch resp.Code {
		case wire.RespGroupNotExist:
			err = ErrGroupNotFound
		case wire.RespNotSupported:
			g, err = c.groupOfAll(ctx, at, group)
		default: // the broker's words stand
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the settings of group %s at broker %s: %w", group, at.Name, err)
	}
	g.GroupName = group
	return &g, nil
}

// RetryQueues tells how many retry queues a broker's master gives a group: retryQueueNums. 0 or less: a send-back there is answered
// with SUCCESS and stored nowhere (consumer-semantics.md 8.1 step 4). ErrGroupNotFound when the broker has no settings of the group.
func (c *Client) RetryQueues(ctx context.Context, group, broker string) (int32, error) {
	type settings struct {
		RetryQueues *int32 `json:"retryQueueNums"` // a broker that does not tell is not one that gives none
	}
	var g settings
	err := c.table(ctx, request{broker: broker, header: &wire.GroupRequest{Op: wire.ReqGetSubscriptionGroupConfig, Group: group, Common: named(broker)}}, &g)
	if resp, refused := errors.AsType[*ResponseError](err); refused {
		switch resp.Code {
		case wire.RespGroupNotExist:
			err = ErrGroupNotFound
		case wire.RespNotSupported: // before 5.0
			var all struct {
				Groups map[string]settings `json:"subscriptionGroupTable"`
			}
			err = c.table(ctx, request{broker: broker, header: &wire.PlainRequest{Op: wire.ReqGetAllSubscriptionGroups}}, &all)
			found, ok := all.Groups[c.wired(group)]
			if g = found; err == nil && !ok {
				err = ErrGroupNotFound
			}
		default: // the broker's words stand
		}
	}
	if err == nil && g.RetryQueues == nil {
		err = fmt.Errorf("%w: the answer does not tell retryQueueNums", ErrProtocol)
	}
	if err != nil {
		return 0, fmt.Errorf("reading the settings of group %s at broker %s: %w", group, broker, err)
	}
	return *g.RetryQueues, nil
}

func (c *Client) groupOfAll(ctx context.Context, at BrokerAddr, group string) (wire.SubscriptionGroup, error) {
	var all wire.SubscriptionGroupTable
	if err := c.tableAt(ctx, at, &wire.PlainRequest{Op: wire.ReqGetAllSubscriptionGroups}, &all); err != nil {
		return wire.SubscriptionGroup{}, err
	}
	g, ok := all.Groups[c.wired(group)]
	if !ok {
		return g, ErrGroupNotFound
	}
	return g, nil
}

// tableAt asks one address for a JSON body.
func (c *Client) tableAt(ctx context.Context, at BrokerAddr, header wire.Request, into any) error {
	r := request{broker: at.Name, header: header}
	reply, err := c.send(ctx, at, r)
	if err != nil {
		return err
	}
	if err := c.refusal(r, at, reply); err != nil {
		return err
	}
	defer reply.Release()
	if err := wire.DecodeBody(reply.Body, into); err != nil {
		return fmt.Errorf("%w: reading the answer of %s to %s: %w", ErrProtocol, at.Name, header.RequestCode(), err)
	}
	return nil
}
