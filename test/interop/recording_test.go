package interop

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/streamd/streamd/internal/broker/faultproxy"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// recording is which codes clients sent over proxies, and what the servers refused as not supported.
type recording struct {
	mu      sync.Mutex
	sent    map[sighting]int
	refused map[sighting]int
}

// sighting is a request code that came from one kind of client.
type sighting struct {
	Client string // java (mqadmin too) or go
	Code   wire.RequestCode
}

func newRecording() *recording {
	return &recording{sent: map[sighting]int{}, refused: map[sighting]int{}}
}

// before puts a recording proxy before a server. address is where it listens.
func (r *recording) before(t *testing.T, address, target string) string {
	t.Helper()
	p := faultproxy.New(faultproxy.Config{Target: target, Address: address})
	p.Inject(faultproxy.Rule{Match: func(f faultproxy.Frame) bool {
		r.note(f)
		return false // it is only looked at
	}, Do: faultproxy.Drop()})
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p.Address()
}

func (r *recording) note(f faultproxy.Frame) {
	if !f.Readable {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !f.IsResponse() && f.Direction == faultproxy.ToBroker:
		if client := sender(&f.Command); client != "" {
			r.sent[sighting{client, f.Code}]++
		}
	case f.IsResponse() && f.Direction == faultproxy.ToClient && f.Command.ResponseCode() == wire.RespNotSupported:
		r.refused[sighting{"a client", f.Code}]++
	}
}

// sender is whose request it is; streamd's own do not count.
func sender(c *wire.Command) string {
	switch {
	case c.Language != wire.LanguageGo:
		return "java"
	case c.Version != int32(wire.OwnVersion):
		return "go"
	default:
		return ""
	}
}

// codes lists what was sent, by client and code.
func (r *recording) codes() []sighting {
	r.mu.Lock()
	defer r.mu.Unlock()
	return sorted(r.sent)
}

func (r *recording) refusals() []sighting {
	r.mu.Lock()
	defer r.mu.Unlock()
	return sorted(r.refused)
}

func sorted(m map[sighting]int) []sighting {
	return slices.SortedFunc(maps.Keys(m), func(a, b sighting) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Code, b.Code))
	})
}

// otherLoopback is the same port on another address of the loopback, where a proxy can stand in a broker's stead.
func otherLoopback(address string, last int) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("127.0.0.%d:%s", last, port)
}
