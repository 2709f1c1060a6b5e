package brokersuite

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// session is one run of a scenario.
type session struct {
	tb         testing.TB
	scenario   string
	nameServer string
	broker     string // the broker's address
	script     *Transcript
	peers      []*peer
	main, ns   *peer
}

func newSession(tb testing.TB, nameServer, scenario string) *session {
	tb.Helper()
	s := &session{tb: tb, scenario: scenario, nameServer: nameServer, script: new(Transcript)}
	s.ns = s.dial(nameServer)
	var info struct {
		Brokers map[string]struct {
			Addresses map[string]string `json:"brokerAddrs"`
		} `json:"brokerAddrTable"`
	}
	s.poll("a broker that is registered", func() bool {
		a := s.ns.await(s.ns.start(&wire.Command{Code: int32(wire.ReqGetClusterInfo)}))
		return a != nil && a.Code == 0 && wire.DecodeBody(a.Body, &info) == nil && info.Brokers["broker-a"].Addresses["0"] != ""
	})
	s.broker = info.Brokers["broker-a"].Addresses["0"]
	s.main = s.dial(s.broker)
	return s
}

func (s *session) dial(address string) *peer {
	s.tb.Helper()
	p := dial(s.tb, address)
	s.peers = append(s.peers, p)
	return p
}

// peer opens another connection to the broker.
func (s *session) peer() *peer {
	s.tb.Helper()
	return s.dial(s.broker)
}

// name is a name for a topic, a group, a client or a key that no other scenario uses.
func (s *session) name(local string) string { return "bs-" + s.scenario + "-" + local }

// note writes a step down.
func (s *session) note(step string, lines ...string) {
	s.tb.Helper()
	n := s.normal()
	out := make([]string, 0, len(lines))
	for _, l := range lines {
		out = append(out, n.text(l))
	}
	if err := s.script.add(step, out); err != nil {
		s.tb.Fatal(err)
	}
}

// ask sends a request and writes its answer down.
func (s *session) ask(step string, code wire.RequestCode, f fields, body []byte, shapes ...shape) *wire.Command {
	s.tb.Helper()
	return s.askAs(s.main, step, code, f, body, shapes...)
}

func (s *session) askAs(p *peer, step string, code wire.RequestCode, f fields, body []byte, shapes ...shape) *wire.Command {
	s.tb.Helper()
	a := p.await(p.start(&wire.Command{Code: int32(code), Ext: f.list(), Body: body}))
	s.record(step, code, a, shapes...)
	return a
}

func (s *session) record(step string, code wire.RequestCode, a *wire.Command, shapes ...shape) {
	s.tb.Helper()
	if err := s.script.add(step, s.normal().answer(code, a, shapes...)); err != nil {
		s.tb.Fatal(err)
	}
}

// do sends a request that prepares a step: it must succeed and is not written down.
func (s *session) do(p *peer, code wire.RequestCode, f fields, body []byte) *wire.Command {
	s.tb.Helper()
	a := p.await(p.start(&wire.Command{Code: int32(code), Ext: f.list(), Body: body}))
	if a == nil || a.Code != 0 {
		s.tb.Fatalf("%v of %v: %+v", code, f, a)
	}
	return a
}

// poll waits for what no message tells.
func (s *session) poll(what string, ok func() bool) {
	s.tb.Helper()
	limit := time.NewTimer(callTimeout)
	defer limit.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit.C:
			s.tb.Fatalf("waiting for %s took longer than %s", what, callTimeout)
		}
	}
}

// pause lets time pass where the passing itself is what a step needs.
func (s *session) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

func toJSON(tb testing.TB, v any) []byte {
	tb.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// properties joins names and values to the text form, with a separator behind each.
func properties(pairs ...string) string {
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		b.WriteString(pairs[i] + "\x01" + pairs[i+1] + "\x02")
	}
	return b.String()
}
