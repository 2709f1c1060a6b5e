package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// FilterError is a broker's refusal to filter as a subscription wants.
type FilterError struct {
	Subscription Subscription
	// Unsupported means that the broker filters by no such language at all: a setting of the broker. Otherwise it cannot
	// read the expression.
	Unsupported bool
	Err         error // the broker's words, a *ResponseError
}

// Error says what to change, and where.
func (e *FilterError) Error() string {
	s := e.Subscription
	if e.Unsupported {
		who := "the broker"
		if resp, ok := errors.AsType[*ResponseError](e.Err); ok {
			who = fmt.Sprintf("broker %s (%s)", resp.Broker, resp.Addr)
		}
		return fmt.Sprintf("%s does not filter by %s, which the subscription of topic %s needs; set enablePropertyFilter=true in its configuration "+
			"(or: mqadmin updateBrokerConfig -b HOST:PORT -k enablePropertyFilter -v true), or filter by tags: %v", who, s.filterType(), s.Topic, e.Err)
	}
	words := strings.Join(strings.Fields(e.Err.Error()), " ") // a parser's error has many lines
	return fmt.Sprintf("the %s expression %q of topic %s cannot be read by the broker; correct it: %.300s", s.filterType(), s.Expression, s.Topic, words)
}

// Unwrap gives the broker's words.
func (e *FilterError) Unwrap() error { return e.Err }

// CheckFilter asks a broker whether it takes the filter of a group's subscription (46), as Java's client does at its start
// for each filter that is not one of tags. It matters: a broker that cannot read the expression of a pull ignores it and
// lets every message pass (vectors/README.md 4.4). A refusal is a *FilterError; any other error says nothing of the filter.
func (c *Client) CheckFilter(ctx context.Context, group, broker string, s Subscription) error {
	if s.filterType() == FilterTag {
		return nil
	}
	data, err := wire.NewSubscriptionData(s.Topic, string(s.Type), s.Expression, s.Version)
	if err != nil {
		return fmt.Errorf("checking the filter of %s: %w", s.Topic, err)
	}
	data.Topic = c.wired(data.Topic)
	body, err := wire.EncodeBody(&wire.CheckClientBody{ClientID: c.cfg.ClientID, Group: c.wired(group), SubscriptionData: data}, wire.Standard)
	if err != nil {
		return fmt.Errorf("checking the filter of %s: %w", s.Topic, err)
	}
	reply, err := c.onMaster(ctx, request{
		broker: broker, topic: s.Topic, header: &wire.PlainRequest{Op: wire.ReqCheckClientConfig}, body: body, anyReplica: true, fast: true,
	})
	if err != nil {
		return fmt.Errorf("checking the filter of %s at broker %s: %w", s.Topic, broker, filterRefusal(s, err))
	}
	reply.Release()
	return nil
}

// filterRefusal tells a refusal of a filter from other errors. A broker without property filters has no code of its own for
// it, only a remark (PullMessageProcessor, ClientManageProcessor).
func filterRefusal(s Subscription, err error) error {
	var resp *ResponseError
	if !errors.As(err, &resp) {
		return err
	}
	switch resp.Code {
	case wire.RespSubscriptionParseFailed, wire.RespFilterDataNotExist:
		return &FilterError{Subscription: s, Err: err}
	case wire.RespSystemError:
		if strings.Contains(resp.Remark, "does not support consumer to filter message") {
			return &FilterError{Subscription: s, Unsupported: true, Err: err}
		}
	default: // nothing to do with filters
	}
	return err
}

// Registered lists what the brokers of some topics have registered for a group: the subscriptions of whichever member's
// heartbeat came last (203). They are asked side by side; where they differ the newer version counts. Nothing when no member is
// online there, or when no topic is known; an error when no broker could be asked.
func (c *Client) Registered(ctx context.Context, group string, topics []string) ([]Subscription, error) {
	var brokers []string
	var failed error
	for _, topic := range topics {
		queues, err := c.Queues(ctx, topic)
		if err != nil && !errors.Is(err, ErrTopicNotFound) {
			failed = errors.Join(failed, err)
		}
		for _, q := range queues {
			if !slices.Contains(brokers, q.Broker) {
				brokers = append(brokers, q.Broker)
			}
		}
	}
	var mu sync.Mutex
	newest := map[string]Subscription{}
	answered := false
	errs := forEach(brokers, func(broker string) error {
		table, err := c.ConsumerConnections(ctx, broker, group)
		if err != nil && !errors.Is(err, ErrNoMembers) {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		answered = true
		if err == nil {
			takeNewer(newest, table.Subscriptions)
		}
		return nil
	})
	if failed = errors.Join(failed, errors.Join(errs...)); !answered && failed != nil {
		return nil, failed
	}
	out := make([]Subscription, 0, len(newest))
	for _, s := range newest {
		out = append(out, s)
	}
	return out, nil
}

func takeNewer(newest map[string]Subscription, table map[string]wire.SubscriptionData) {
	for topic, data := range table {
		s := SubscriptionOf(data)
		if old, ok := newest[topic]; !ok || old.Version < s.Version {
			newest[topic] = s
		}
	}
}

// SubscriptionOf is a subscription as a member or a broker tells it: a foreign one.
func SubscriptionOf(data wire.SubscriptionData) Subscription {
	s := Subscription{Topic: data.Topic, Expression: data.SubString, Type: FilterType(data.ExpressionType), Version: data.SubVersion, Foreign: true}
	s.Type = s.filterType()
	return s
}

// SameFilter tells whether two subscriptions let the same messages pass: tags in any order, each once; SQL92 as written.
func (s *Subscription) SameFilter(o *Subscription) bool {
	return s.Topic == o.Topic && s.filterType() == o.filterType() && s.normal() == o.normal()
}

// normal is the expression in one form. One that cannot be read stands for itself.
func (s *Subscription) normal() string {
	if s.filterType() != FilterTag {
		return strings.TrimSpace(s.Expression)
	}
	tags, err := wire.ParseTags(s.Expression)
	if err != nil {
		return s.Expression
	}
	if tags == nil {
		return wire.AllTags
	}
	slices.Sort(tags)
	return strings.Join(tags, " || ")
}

// Filter is the filter for people: "all", "tags a || b", "SQL92 amount > 100".
func (s *Subscription) Filter() string {
	switch {
	case s.filterType() != FilterTag:
		return string(s.Type) + " " + s.Expression
	case s.normal() == wire.AllTags:
		return "all"
	}
	return "tags " + s.Expression
}
