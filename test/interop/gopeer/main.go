// Command gopeer is the official Go client as a member of a group or as a producer, for the interoperability tests.
//
//	gopeer consume NAMESERVER GROUP TOPIC TAGS            prints "got ID BODY ATTEMPT BROKER/QUEUE OFFSET"; ends at end of input
//	gopeer produce NAMESERVER TOPIC COUNT SIZE            prints "sent ID BODY"
//	gopeer drain NAMESERVER GROUP TOPIC COUNT default|tuned
//	gopeer latency NAMESERVER GROUP TOPIC COUNT
//	gopeer deliveries NAMESERVER GROUP TOPIC[,TOPIC...]   prints "got BROKER/QUEUE OFFSET NANOS"; ends at end of input
//	gopeer member NAMESERVER GROUP TOPIC LEDGER           keeps the ledger; ends at end of input
//	gopeer workout NAMESERVER BROKER TOPIC                does all that an application can; prints "outcome NAME: TEXT"
//	gopeer load NAMESERVER TOPIC COUNT SIZE BATCH RATE    RATE 0 = as fast as it goes
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

func main() {
	rlog.SetLogLevel("error")
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gopeer:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 5 && args[0] == "consume":
		return consume(args[1], args[2], args[3], args[4])
	case len(args) == 5 && args[0] == "produce":
		return produce(args[1], args[2], args[3], args[4])
	case len(args) == 6 && args[0] == "drain":
		return drain(args[1], args[2], args[3], args[4], args[5])
	case len(args) == 5 && args[0] == "latency":
		return latency(args[1], args[2], args[3], args[4])
	case len(args) == 4 && args[0] == "deliveries":
		return deliveries(args[1], args[2], args[3])
	case len(args) == 5 && args[0] == "member":
		return memberOf(args[1], args[2], args[3], args[4])
	case len(args) == 7 && args[0] == "load":
		return load(args[1], args[2], args[3], args[4], args[5], args[6])
	case len(args) == 8 && args[0] == "secure":
		return secure(args[1], args[2], args[3], args[4], args[5], args[6], args[7])
	case len(args) == 5 && args[0] == "feed":
		return feed(args[1], args[2], args[3], args[4])
	case len(args) == 4 && args[0] == "workout":
		return workout(args[1], args[2], args[3])
	default:
		return fmt.Errorf("usage: gopeer consume NAMESERVER GROUP TOPIC TAGS | produce NAMESERVER TOPIC COUNT SIZE | drain ... | latency ... | load ... | member ... | secure ... | feed ... | workout NAMESERVER BROKER TOPIC")
	}
}

func consume(nameServer, group, topic, tags string) error {
	var mu sync.Mutex
	out := bufio.NewWriter(os.Stdout)
	c, err := started(func(c rocketmq.PushConsumer) error {
		return c.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: tags}, func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			mu.Lock()
			defer mu.Unlock()
			result := consumer.ConsumeSuccess
			for _, m := range ms {
				body := strings.TrimSpace(string(m.Body))
				fmt.Fprintf(out, "got %s %s %d %s/%d %d\n", m.MsgId, body, m.ReconsumeTimes+1, m.Queue.BrokerName, m.Queue.QueueId, m.QueueOffset)
				if strings.HasPrefix(body, "fail") {
					result = consumer.ConsumeRetryLater
				}
			}
			return result, out.Flush()
		})
	}, consumer.WithNameServer([]string{nameServer}), consumer.WithGroupName(group),
		consumer.WithInstance("gopeer"+strconv.Itoa(os.Getpid())), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		return err
	}
	fmt.Println("#ready")
	bufio.NewScanner(os.Stdin).Scan()
	err = c.Shutdown()
	fmt.Println("#done")
	return err
}

func produce(nameServer, topic, count, size string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	bytes, err := strconv.Atoi(size)
	if err != nil {
		return err
	}
	p, err := rocketmq.NewProducer(producer.WithNameServer([]string{nameServer}), producer.WithInstanceName("gopeer"+strconv.Itoa(os.Getpid())),
		producer.WithSendMsgTimeout(sendTimeout))
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	for i := range n {
		body := "go-" + strconv.Itoa(i)
		m := primitive.NewMessage(topic, []byte(body+strings.Repeat(" ", max(0, bytes-len(body)))))
		m.WithProperty("n", strconv.Itoa(i))
		r, err := sent(p, m)
		if err != nil {
			return fmt.Errorf("sending %s: %w", body, err)
		}
		fmt.Println("sent", r.MsgID, body)
	}
	fmt.Println("#done")
	return p.Shutdown()
}
