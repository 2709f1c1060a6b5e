package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

func subscriber(nameServer, group, topic string, f func([]*primitive.MessageExt), more ...consumer.Option) (rocketmq.PushConsumer, error) {
	options := append([]consumer.Option{
		consumer.WithNameServer([]string{nameServer}), consumer.WithGroupName(group),
		consumer.WithInstance("gopeer" + strconv.Itoa(os.Getpid())), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	}, more...)
	return started(func(c rocketmq.PushConsumer) error {
		for one := range strings.SplitSeq(topic, ",") {
			err := c.Subscribe(one, consumer.MessageSelector{Type: consumer.TAG, Expression: "*"},
				func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
					f(ms)
					return consumer.ConsumeSuccess, nil
				})
			if err != nil {
				return err
			}
		}
		return nil
	}, options...)
}

// drain consumes count messages and prints "result NANOS CPUNANOS" from the first to the last.
func drain(nameServer, group, topic, count, mode string) error {
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		return err
	}
	var options []consumer.Option
	if mode == "tuned" {
		options = []consumer.Option{
			consumer.WithPullBatchSize(1024), consumer.WithConsumeMessageBatchMaxSize(256), consumer.WithPullThresholdForQueue(50000),
			consumer.WithPullThresholdForTopic(500000), consumer.WithConsumeConcurrentlyMaxSpan(60000), consumer.WithConsumeGoroutineNums(4),
		}
	}
	var seen, firstCPU, firstNanos atomic.Int64
	done := make(chan struct{})
	var once sync.Once
	c, err := subscriber(nameServer, group, topic, func(ms []*primitive.MessageExt) {
		total := seen.Add(int64(len(ms)))
		if total == int64(len(ms)) {
			firstCPU.Store(cpu())
			firstNanos.Store(time.Now().UnixNano())
		}
		if total >= n {
			once.Do(func() { close(done) })
		}
	}, options...)
	if err != nil {
		return err
	}
	<-done
	fmt.Println("result", time.Now().UnixNano()-firstNanos.Load(), cpu()-firstCPU.Load())
	return c.Shutdown()
}

func cpu() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// latency prints "#ready", then "latency NANOS..." once count messages were handled; a body starts with the producer's clock.
func latency(nameServer, group, topic, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	all := make([]int64, n)
	var seen atomic.Int64
	done := make(chan struct{})
	var once sync.Once
	c, err := subscriber(nameServer, group, topic, func(ms []*primitive.MessageExt) {
		now := time.Now().UnixNano()
		for _, m := range ms {
			if i := seen.Add(1) - 1; int(i) < n {
				all[i] = now - int64(binary.BigEndian.Uint64(m.Body))
			}
		}
		if int(seen.Load()) >= n {
			once.Do(func() { close(done) })
		}
	})
	if err != nil {
		return err
	}
	fmt.Println("#ready")
	<-done
	var out strings.Builder
	out.WriteString("latency")
	for _, l := range all {
		fmt.Fprintf(&out, " %d", l)
	}
	fmt.Println(out.String())
	return c.Shutdown()
}

// deliveries prints each delivery with the clock.
func deliveries(nameServer, group, topic string) error {
	c, err := subscriber(nameServer, group, topic, func(ms []*primitive.MessageExt) {
		now := time.Now().UnixNano()
		var out strings.Builder
		for _, m := range ms {
			fmt.Fprintf(&out, "got %s/%d %d %d\n", m.Queue.BrokerName, m.Queue.QueueId, m.QueueOffset, now)
		}
		fmt.Print(out.String()) // one write: lines of several goroutines do not mix
	})
	if err != nil {
		return err
	}
	fmt.Println("#ready")
	bufio.NewScanner(os.Stdin).Scan()
	err = c.Shutdown()
	fmt.Println("#done")
	return err
}

// load sends count messages of size bytes by senders goroutines in batches, or one by one at rate a second with the clock
// in the body when rate is above 0.
func load(nameServer, topic, count, size, batch, rate string) error {
	var v [4]int
	for i, s := range []string{count, size, batch, rate} {
		n, err := strconv.Atoi(s)
		if err != nil {
			return err
		}
		v[i] = n
	}
	p, err := rocketmq.NewProducer(producer.WithNameServer([]string{nameServer}), producer.WithInstanceName("gopeer"+strconv.Itoa(os.Getpid())), producer.WithCompressMsgBodyOverHowmuch(1<<22))
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	start := time.Now()
	if v[3] > 0 {
		err = paced(p, topic, v[0], v[1], v[3])
	} else {
		err = bulk(p, topic, v[0], v[1], v[2])
	}
	if err != nil {
		return err
	}
	fmt.Println("result", time.Since(start).Nanoseconds())
	fmt.Println("#done")
	return p.Shutdown()
}

func bulk(p rocketmq.Producer, topic string, count, size, batch int) error {
	const senders = 8
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make(chan error, senders)
	for range senders {
		wg.Go(func() {
			for {
				first := int(next.Add(int64(batch))) - batch
				if first >= count {
					return
				}
				var ms []*primitive.Message
				for i := first; i < min(count, first+batch); i++ {
					ms = append(ms, primitive.NewMessage(topic, make([]byte, size)))
				}
				if _, err := sent(p, ms...); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

// sent sends. The client gives up a topic whose route it did not get in time, as on a machine that is busy with others' starts.
func sent(p rocketmq.Producer, ms ...*primitive.Message) (r *primitive.SendResult, err error) {
	err = routed(func() (err error) {
		r, err = p.SendSync(context.Background(), ms...)
		return err
	})
	return r, err
}

// sendTimeout is how long an answer to a send may take. A message that is sent again for want of one is stored twice.
const sendTimeout = time.Minute

// answered asks again when no answer came in time: the client's administration waits a few seconds.
func answered(ask func() error) error {
	for try := 0; ; try++ {
		err := ask()
		if err == nil || try == 10 || !strings.Contains(err.Error(), "timeout") && !strings.Contains(err.Error(), "deadline") {
			return err
		}
	}
}

// started makes a consumer, lets it subscribe and starts it. The client gives up one whose topic's route it did not get in time; one
// that was given up does not start again, so another one is made.
func started(subscribe func(rocketmq.PushConsumer) error, options ...consumer.Option) (rocketmq.PushConsumer, error) {
	for try := 0; ; try++ {
		c, err := rocketmq.NewPushConsumer(options...)
		if err != nil {
			return nil, err
		}
		if err := subscribe(c); err != nil {
			return nil, err
		}
		err = c.Start()
		if err == nil || try == 20 || !strings.Contains(err.Error(), "route info not found") {
			return c, err
		}
		pause(500 * time.Millisecond)
	}
}

// routed sends again what was not sent for want of a route.
func routed(send func() error) error {
	for try := 0; ; try++ {
		err := send()
		if err == nil || try == 20 || !strings.Contains(err.Error(), "route info not found") {
			return err
		}
		pause(100 * time.Millisecond)
	}
}

func pause(d time.Duration) {
	t := time.NewTimer(d)
	<-t.C
}

func paced(p rocketmq.Producer, topic string, count, size, rate int) error {
	start := time.Now()
	var wg sync.WaitGroup
	errs := make(chan error, count)
	slots := make(chan struct{}, 64)
	for i := range count {
		pause(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		slots <- struct{}{}
		wg.Go(func() {
			body := make([]byte, size)
			binary.BigEndian.PutUint64(body, uint64(time.Now().UnixNano()))
			if _, err := sent(p, primitive.NewMessage(topic, body)); err != nil {
				errs <- err
			}
			<-slots
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}
