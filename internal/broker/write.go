package broker

import (
	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// write is one change of the store on its way, and whom to tell of it.
type write struct {
	broker *Broker
	change store.Change
	buffer *[]byte // what the records are in, if it was lent
}

func (b *Broker) newWrite() *write { return &write{broker: b} }

// add adds records behind each other to one queue.
func (w *write) add(topic string, queue int32, records ...store.Record) {
	w.change.Appends = append(w.change.Appends, store.Append{Topic: topic, Queue: queue, Records: records})
}

// submit puts the change in line. Positions are known when it returns; the error is one of a change that was refused at once.
// That it is stored, settled tells; then the pulls that wait for its messages are woken.
func (w *write) submit() error {
	err := w.broker.storage.submit(&w.change, func(err error) {
		if err == nil {
			w.stored()
		}
		w.release()
	})
	if err != nil {
		w.release()
	}
	return err
}

func (w *write) release() {
	if w.buffer != nil {
		w.broker.sends.giveBack(w.buffer)
	}
}

// wait is submit that waits until the change is stored.
func (w *write) wait() error {
	result := make(chan error, 1)
	err := w.broker.storage.submit(&w.change, func(err error) {
		if err == nil {
			w.stored()
		}
		result <- err
	})
	if err != nil {
		return err
	}
	return <-result
}

// stored wakes those who wait for what is stored now.
func (w *write) stored() {
	b := w.broker
	for _, a := range w.change.Appends {
		for _, r := range a.Records {
			if r.Due > 0 {
				b.delays.arm(r.Due)
			}
		}
		if a.Topic != wire.ScheduleTopic && a.Topic != wire.TimerTopic {
			b.arrived(a.Topic, a.Queue, a.Records)
		}
	}
	b.changes.happened()
}
