package broker_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// A broker on a free port, with two messages, short delay levels, and one send-back that is refused.
func Example() {
	b := broker.New(broker.Config{DelayLevels: []time.Duration{time.Millisecond, 2 * time.Millisecond}})
	if err := b.Start(); err != nil {
		log.Fatal(err)
	}
	b.CreateTopic("Orders", 4)
	if err := b.Put(broker.Message{Topic: "Orders", Queue: 1, Body: []byte("a")}, broker.Message{Topic: "Orders", Body: []byte("b")}); err != nil {
		log.Fatal(err)
	}
	refused := b.Faults().Inject(broker.Fault{
		Codes: []wire.RequestCode{wire.ReqSendBack}, Times: 1, Do: broker.Refuse(wire.RespSystemError, "disk full"),
	})
	// Clients use b.Address() as name server; it leads them to the same address as broker. Then, for example:
	//	b.Await(ctx, func(b *broker.Broker) bool { return len(b.DeadLetters("billing")) == 1 })
	//	refused.Wait(ctx, 1)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := b.Await(ctx, func(b *broker.Broker) bool { return len(b.Messages("Orders")) == 2 })
	fmt.Println(errors.Join(err, b.Close()), refused.Hits(), len(b.Members("billing")))
	// Output: <nil> 0 0
}
