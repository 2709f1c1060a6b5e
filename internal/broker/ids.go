package broker

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"sync/atomic"
	"time"

	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// idMaker makes unique ids for messages that came without one, in the layout of RocketMQ's (remoting-protocol.md 4.7).
type idMaker struct{ counter atomic.Uint32 }

func newIDMaker() *idMaker { return &idMaker{} }

func (m *idMaker) next(address [4]byte) string {
	n := m.counter.Add(1)
	now := time.Now()
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, now.Location())
	id := make([]byte, 0, 16)
	id = append(id, address[:]...)
	id = binary.BigEndian.AppendUint16(id, uint16(n>>16))
	id = binary.BigEndian.AppendUint32(id, 0x53544D44)
	id = binary.BigEndian.AppendUint32(id, uint32(now.Sub(month).Milliseconds()))
	id = binary.BigEndian.AppendUint16(id, uint16(n))
	return strings.ToUpper(hex.EncodeToString(id))
}

func (b *Broker) newUniqueKey() string {
	var a [4]byte
	if host := b.storeHost().Addr(); host.Is4() {
		a = host.As4()
	}
	return b.ids.next(a)
}

// offsetIDs joins the offset ids of stored messages with commas.
func (b *Broker) offsetIDs(positions []store.Position) string {
	host := b.storeHost()
	ids := make([]byte, 0, 33*len(positions))
	for i, p := range positions {
		if i > 0 {
			ids = append(ids, ',')
		}
		ids = wire.AppendOffsetID(ids, host, p.LogOffset)
	}
	return string(ids)
}
