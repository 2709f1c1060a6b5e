package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// secure sends with keys and over TLS, whose certificate this client never verifies: count messages "go-N" to a topic, and one
// to another; it prints "sent N" or "refused: WHY", and "sent output" or "output refused: WHY". Then it consumes the first topic
// in the group and prints "got BODY" for each delivery, until a line or the end of standard input.
func secure(nameServer, key, secret, topic, output, group, count string) (err error) {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	keys := primitive.Credentials{AccessKey: key, SecretKey: secret}
	p, err := producer.NewDefaultProducer(producer.WithNameServer([]string{nameServer}), producer.WithGroupName("p-"+group), producer.WithRetry(0), producer.WithSendMsgTimeout(sendTimeout),
		producer.WithInstanceName("secure"+strconv.Itoa(os.Getpid())), producer.WithTls(true), producer.WithCredentials(keys))
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Shutdown()) }()
	for i := range n {
		if _, err := sent(p, primitive.NewMessage(topic, fmt.Appendf(nil, "go-%d", i))); err != nil {
			fmt.Println("refused:", err)
			continue
		}
		fmt.Println("sent", i)
	}
	if _, err := sent(p, primitive.NewMessage(output, []byte("output"))); err != nil {
		fmt.Println("output refused:", err)
	} else {
		fmt.Println("sent output")
	}
	c, err := subscriber(nameServer, group, topic, func(ms []*primitive.MessageExt) {
		for _, m := range ms {
			fmt.Printf("got %s\n", m.Body)
		}
	}, consumer.WithTls(true), consumer.WithCredentials(keys))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Shutdown()) }()
	fmt.Println("#ready")
	bufio.NewScanner(os.Stdin).Scan()
	return nil
}
