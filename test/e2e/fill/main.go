// Command fill DIR HOST:PORT QUEUES COUNT DELAYS DUE stores messages in a broker's data folder through the store's own
// interface: COUNT of topic Many with the bodies "0" to "COUNT-1", in turn over its queues, and DELAYS for topic Late with the
// bodies "late N", due at DUE in milliseconds since 1970. It is a program because tests run under the race detector, in which
// this takes ten times as long.
package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"sync"

	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// atOnce is how many messages of a queue are one change.
const atOnce = 5000

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fill:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 6 {
		return errors.New("usage: fill DIR HOST:PORT QUEUES COUNT DELAYS DUE")
	}
	host, err := netip.ParseAddrPort(args[1])
	if err != nil {
		return err
	}
	var n [4]int64 // queues, count, delays, due
	for i, text := range args[2:] {
		if n[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return err
		}
	}
	s, err := store.Open(store.Options{Dir: args[0], Flush: store.FlushAsync})
	if err != nil {
		return err
	}
	f := &filler{store: s, host: host}
	err = errors.Join(f.many(n[0], n[1]), f.late(n[2], n[3]))
	err = errors.Join(err, s.Close()) // stores what is in line, and its callbacks have been called
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(err, f.failed)
}

type filler struct {
	store *store.Store
	host  netip.AddrPort

	mu     sync.Mutex
	failed error
}

func (f *filler) many(queues, count int64) error {
	for first := int64(0); first < count; first += atOnce * queues {
		for q := range queues {
			a := store.Append{Topic: "Many", Queue: int32(q)}
			for i := first + q; i < min(count, first+atOnce*queues); i += queues {
				if err := f.add(&a, wire.Message{}, strconv.FormatInt(i, 10), 0); err != nil {
					return err
				}
			}
			if err := f.submit(a); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *filler) late(count, due int64) error {
	a := store.Append{Topic: wire.ScheduleTopic}
	for i := range count {
		m := wire.Message{Properties: []byte("REAL_TOPIC\x01Late\x02REAL_QID\x010\x02")}
		if err := f.add(&a, m, fmt.Sprint("late ", i), due); err != nil {
			return err
		}
	}
	return f.submit(a)
}

func (f *filler) add(a *store.Append, m wire.Message, body string, due int64) error {
	m.Topic, m.BornHost, m.StoreHost, m.Body, m.BodyCRC = []byte(a.Topic), f.host, f.host, []byte(body), wire.BodyCRC([]byte(body))
	raw, err := m.Append(nil)
	a.Records = append(a.Records, store.Record{Raw: raw, Due: due})
	return err
}

func (f *filler) submit(a store.Append) error {
	return f.store.Submit(&store.Change{Appends: []store.Append{a}}, func(err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.failed = errors.Join(f.failed, err)
	})
}
