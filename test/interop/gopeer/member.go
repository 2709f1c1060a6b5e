package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/streamd/streamd/test/interop/ledger"
)

// memberOf is a push consumer that keeps the ledger and behaves as the first word of the body says, as the ledger plugin does.
func memberOf(nameServer, group, topic, path string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	c, err := started(func(c rocketmq.PushConsumer) error {
		return c.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}, func(ctx context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			result := consumer.ConsumeSuccess
			for _, m := range ms {
				verdict, err := keep(file, m)
				if err != nil {
					return consumer.ConsumeRetryLater, err
				}
				if verdict == "" {
					continue
				}
				result = consumer.ConsumeRetryLater
				if now, ok := primitive.GetConcurrentlyCtx(ctx); ok && verdict == "told to reject" {
					now.DelayLevelWhenNextConsume = -1
				}
			}
			return result, nil
		})
	}, consumer.WithNameServer([]string{nameServer}), consumer.WithGroupName(group),
		consumer.WithInstance("member"+strconv.Itoa(os.Getpid())), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		return err
	}
	fmt.Println("#ready")
	bufio.NewScanner(os.Stdin).Scan()
	err = c.Shutdown()
	fmt.Println("#done")
	return errors.Join(err, file.Close())
}

// keep handles a message between two lines of the ledger; verdict is empty for a success.
func keep(file *os.File, m *primitive.MessageExt) (verdict string, err error) {
	body := ledger.Head(m.Body)
	topic := m.Topic
	if of := m.GetProperty(primitive.PropertyRetryTopic); of != "" {
		topic = of
	}
	e := ledger.Entry{
		Event: ledger.Start, ID: m.MsgId, Body: body, Attempt: int(m.ReconsumeTimes) + 1, Queue: fmt.Sprintf("%s/%s/%d", topic, m.Queue.BrokerName, m.Queue.QueueId),
		Offset: m.QueueOffset, PID: os.Getpid(), Host: os.Getpid(),
	}
	if err := write(file, e); err != nil {
		return "", err
	}
	word, _, _ := strings.Cut(body, " ")
	kind, text, _ := strings.Cut(word, "-")
	n, err := strconv.Atoi(text)
	if err != nil {
		n = 0 // a word without a number
	}
	switch {
	case kind == "fail" && e.Attempt <= n:
		verdict = "told to fail"
	case kind == "reject":
		verdict = "told to reject"
	case kind == "slow":
		pause(time.Duration(n) * time.Millisecond)
	}
	e.Event, e.Error = ledger.End, verdict
	return verdict, write(file, e)
}

func write(file *os.File, e ledger.Entry) error {
	e.At = time.Now().UnixNano()
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n')) // one write: lines of several processes do not mix
	return err
}
