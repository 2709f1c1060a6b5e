package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// workout does with the Go client all that an application can, and prints "outcome NAME: TEXT" for each piece. TEXT is the same
// on every broker that behaves the same.
func workout(nameServer, broker, topic string) error {
	w := &worker{ns: nameServer, broker: broker, topic: topic}
	for _, p := range []struct {
		name string
		run  func() (string, error)
	}{{"admin", w.admin}, {"produce", w.produce}, {"push", w.push}, {"order", w.order}, {"transaction", w.transaction}, {"delete", w.remove}} {
		text, err := p.run()
		if err != nil {
			text = "failed: " + strings.ReplaceAll(err.Error(), "\n", " ")
		}
		fmt.Printf("outcome %s: %s\n", p.name, text)
	}
	fmt.Println("#done")
	return nil
}

type worker struct{ ns, broker, topic string }

// patience is how long a piece waits for what must come.
const patience = 3 * time.Minute

func (w *worker) tool() (admin.Admin, error) {
	return admin.NewAdmin(admin.WithResolver(primitive.NewPassthroughResolver([]string{w.ns})))
}

func (w *worker) admin() (string, error) {
	a, err := w.tool()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, topic := range []string{w.topic, w.topic + "order", w.topic + "trans", w.topic + "made"} {
		err := answered(func() error {
			return a.CreateTopic(ctx, admin.WithTopicCreate(topic), admin.WithBrokerAddrCreate(w.broker))
		})
		if err != nil {
			return "", fmt.Errorf("creating %s: %w", topic, err)
		}
	}
	groups, err := a.GetAllSubscriptionGroup(ctx, w.broker, patience)
	if err != nil {
		return "", fmt.Errorf("listing groups: %w", err)
	}
	if err := w.listed(ctx, a); err != nil {
		return "", err
	}
	queues, err := a.FetchPublishMessageQueues(ctx, w.topic)
	if err != nil {
		return "", fmt.Errorf("listing queues: %w", err)
	}
	return fmt.Sprintf("groups %t, %d queues", groups.SubscriptionGroupTable != nil, len(queues)), a.Close()
}

// listed waits until the name server knows the topics: a broker tells it a moment after it made them.
func (w *worker) listed(ctx context.Context, a admin.Admin) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		var list *admin.TopicList
		err := answered(func() (err error) {
			list, err = a.FetchAllTopicList(ctx)
			return err
		})
		if err != nil {
			return fmt.Errorf("listing topics: %w", err)
		}
		if slices.Contains(list.TopicList, w.topic+"made") {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the topics are not listed: %w", ctx.Err())
		}
	}
}

func (w *worker) remove() (string, error) {
	a, err := w.tool()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err = answered(func() error {
		return a.DeleteTopic(ctx, admin.WithTopicDelete(w.topic+"made"), admin.WithBrokerAddrDelete(w.broker), admin.WithNameSrvAddr([]string{w.ns}))
	})
	if err != nil {
		return "", fmt.Errorf("deleting: %w", err)
	}
	return "deleted", a.Close()
}

func (w *worker) producer(name string) (rocketmq.Producer, error) {
	p, err := rocketmq.NewProducer(producer.WithNameServer([]string{w.ns}), producer.WithInstanceName("go-"+name), producer.WithGroupName("go-"+name),
		producer.WithSendMsgTimeout(sendTimeout))
	if err != nil {
		return nil, err
	}
	return p, p.Start()
}

func (w *worker) produce() (string, error) {
	p, err := w.producer("produce")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	message := func(body, tag string) *primitive.Message {
		return primitive.NewMessage(w.topic, []byte(body)).WithTag(tag).WithKeys([]string{"key-" + body})
	}
	one, err := sent(p, message("sync", "red"))
	if err != nil {
		return "", fmt.Errorf("sync: %w", err)
	}
	done := make(chan error, 1)
	if err := p.SendAsync(ctx, func(_ context.Context, _ *primitive.SendResult, err error) { done <- err }, message("async", "green")); err != nil {
		return "", fmt.Errorf("async: %w", err)
	}
	if err := <-done; err != nil {
		return "", fmt.Errorf("async: %w", err)
	}
	if err := p.SendOneWay(ctx, message("oneway", "green")); err != nil {
		return "", fmt.Errorf("one-way: %w", err)
	}
	batch, err := p.SendSync(ctx, message("batch0", "b"), message("batch1", "b"))
	if err != nil {
		return "", fmt.Errorf("batch: %w", err)
	}
	late := message("late", "l")
	late.WithDelayTimeLevel(2)
	if _, err := p.SendSync(ctx, late); err != nil {
		return "", fmt.Errorf("delay: %w", err)
	}
	if _, err := p.SendSync(ctx, message(strings.Repeat("z", 9000), "big")); err != nil {
		return "", fmt.Errorf("compressed: %w", err)
	}
	return fmt.Sprint(one.Status, " ", batch.Status), p.Shutdown()
}

// collect consumes until n bodies came.
func (w *worker) collect(name, topic string, n int, more ...consumer.Option) (string, error) {
	var mu sync.Mutex
	seen := map[string]int32{}
	enough := make(chan struct{})
	c, err := started(func(c rocketmq.PushConsumer) error {
		return c.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}, func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			mu.Lock()
			defer mu.Unlock()
			for _, m := range ms {
				body := string(m.Body)
				if len(body) > 100 {
					body = fmt.Sprint(len(body), " bytes")
				}
				if body == "sync" && m.ReconsumeTimes == 0 {
					return consumer.ConsumeRetryLater, nil
				}
				if seen[body] = max(seen[body], m.ReconsumeTimes); len(seen) == n {
					select {
					case <-enough:
					default:
						close(enough)
					}
				}
			}
			return consumer.ConsumeSuccess, nil
		})
	}, append([]consumer.Option{
		consumer.WithNameServer([]string{w.ns}), consumer.WithGroupName("go-" + name + "-" + w.topic), consumer.WithInstance("go-" + name),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	}, more...)...)
	if err != nil {
		return "", err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	all := true
	select {
	case <-enough:
	case <-timer.C:
		all = false
	}
	err = c.Shutdown()
	mu.Lock()
	defer mu.Unlock()
	var out []string
	for body, attempts := range seen {
		out = append(out, fmt.Sprintf("%s/%d", body, attempts))
	}
	slices.Sort(out)
	return fmt.Sprint(all, " ", out), err
}

func (w *worker) push() (string, error) { return w.collect("push", w.topic, 7) }

func (w *worker) order() (string, error) {
	p, err := w.producer("order")
	if err != nil {
		return "", err
	}
	for i := range 4 {
		if _, err := sent(p, primitive.NewMessage(w.topic+"order", fmt.Append(nil, "o", i))); err != nil {
			return "", err
		}
	}
	got, err := w.collect("order", w.topic+"order", 4, consumer.WithConsumerOrder(true))
	if err != nil {
		return "", err
	}
	return got, p.Shutdown()
}

// states answers a transaction's own step by its body.
type states struct{}

func (states) ExecuteLocalTransaction(m *primitive.Message) primitive.LocalTransactionState {
	switch string(m.Body) {
	case "commit":
		return primitive.CommitMessageState
	case "rollback":
		return primitive.RollbackMessageState
	default:
		return primitive.UnkonwnState
	}
}

// CheckLocalTransaction is asked also for what was told, when that is on its way.
func (states) CheckLocalTransaction(m *primitive.MessageExt) primitive.LocalTransactionState {
	if string(m.Body) == "rollback" {
		return primitive.RollbackMessageState
	}
	return primitive.CommitMessageState
}

func (w *worker) transaction() (string, error) {
	p, err := rocketmq.NewTransactionProducer(states{}, producer.WithNameServer([]string{w.ns}),
		producer.WithInstanceName("go-transaction"), producer.WithGroupName("go-transaction-"+w.topic), producer.WithSendMsgTimeout(sendTimeout))
	if err != nil {
		return "", err
	}
	if err := p.Start(); err != nil {
		return "", err
	}
	for _, body := range []string{"commit", "rollback", "unknown"} {
		err := routed(func() error {
			_, err := p.SendMessageInTransaction(context.Background(), primitive.NewMessage(w.topic+"trans", []byte(body)))
			return err
		})
		if err != nil {
			return "", err
		}
	}
	got, err := w.collect("transaction", w.topic+"trans", 2)
	if err != nil {
		return "", err
	}
	return got, p.Shutdown()
}
