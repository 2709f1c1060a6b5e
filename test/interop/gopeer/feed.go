package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// feed sends "ok MARK/N" with growing N until a line or the end of standard input, and each again until it is acknowledged, which
// it tells as "sent ok MARK/N". At the end it prints "#done".
func feed(nameServer, topic, mark, rate string) error {
	perSecond, err := strconv.Atoi(rate)
	if err != nil {
		return err
	}
	p, err := rocketmq.NewProducer(producer.WithNameServer([]string{nameServer}), producer.WithInstanceName("feed"+strconv.Itoa(os.Getpid())), producer.WithRetry(0))
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	over := make(chan struct{})
	go func() {
		bufio.NewScanner(os.Stdin).Scan()
		close(over)
	}()
	fmt.Println("#ready")
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for n := 0; ; {
		body := fmt.Sprintf("ok %s/%d", mark, n)
		// An error means that nothing is known: sent again.
		if r, err := p.SendSync(context.Background(), primitive.NewMessage(topic, []byte(body))); err == nil && r.Status == primitive.SendOK {
			fmt.Println("sent", body)
			n++
		}
		select {
		case <-tick.C:
		case <-over:
			err := p.Shutdown()
			_, done := fmt.Println("#done")
			return errors.Join(err, done)
		}
	}
}
