package rocketmq

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// network is an in-memory network of scripted servers, which synctest can follow.
type network struct {
	t       *testing.T
	mu      sync.Mutex
	servers map[string]*server
	dials   []string
}

// server answers requests as its script says; without a line for a code it answers success.
type server struct {
	t    *testing.T
	addr string

	mu      sync.Mutex
	mode    mode
	version wire.Version
	script  map[wire.RequestCode]func(*wire.Command) *wire.Command // nil result = no answer
	seen    []*wire.Command
	conns   map[net.Conn]*sync.Mutex
}

type mode int

const (
	up       mode = iota
	absent        // connections fail
	refusing      // connections are refused: the machine is there, the server is not
	lost          // connecting never ends
	silent        // takes everything, says nothing
)

func newNetwork(t *testing.T) *network {
	t.Helper()
	return &network{t: t, servers: map[string]*server{}}
}

func (n *network) add(addr string) *server {
	s := &server{
		t: n.t, addr: addr, version: wire.Version5_3_3, conns: map[net.Conn]*sync.Mutex{},
		script: map[wire.RequestCode]func(*wire.Command) *wire.Command{},
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.servers[addr] = s
	return s
}

var errRefused = errors.New("no way to the host")

func (n *network) dial(ctx context.Context, addr string) (net.Conn, error) {
	n.mu.Lock()
	s := n.servers[addr]
	n.dials = append(n.dials, addr)
	n.mu.Unlock()
	if s == nil || s.now() == absent {
		return nil, errRefused
	}
	if s.now() == refusing {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	if s.now() == lost {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	near, far := net.Pipe()
	go s.attend(far)
	return near, nil
}

func (n *network) dialed(addr string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(n.dials), func(a string) bool { return a != addr }))
}

func (s *server) now() mode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mode
}

func (s *server) attend(nc net.Conn) {
	s.mu.Lock()
	s.conns[nc] = &sync.Mutex{}
	s.mu.Unlock()
	in := bufio.NewReader(nc)
	for {
		cmd, err := readCommand(in)
		if err != nil {
			s.mu.Lock()
			delete(s.conns, nc)
			s.mu.Unlock()
			_ = nc.Close()
			return
		}
		go s.serve(nc, cmd)
	}
}

func readCommand(in io.Reader) (*wire.Command, error) {
	prefix := make([]byte, wire.PrefixSize)
	if _, err := io.ReadFull(in, prefix); err != nil {
		return nil, err
	}
	n, err := wire.FrameLength(prefix)
	if err != nil {
		return nil, err
	}
	content := make([]byte, n)
	if _, err := io.ReadFull(in, content); err != nil {
		return nil, err
	}
	cmd := new(wire.Command)
	return cmd, cmd.Decode(content)
}

func (s *server) serve(nc net.Conn, req *wire.Command) {
	s.mu.Lock()
	s.seen = append(s.seen, req)
	f, mute, version := s.script[req.RequestCode()], s.mode == silent, s.version
	s.mu.Unlock()
	if mute || req.IsResponse() {
		return
	}
	resp := wire.NewResponse(req, wire.RespSuccess, "")
	if f != nil {
		resp = f(req)
	}
	if resp != nil && !req.IsOneway() {
		resp.Version = int32(version)
		s.write(nc, resp)
	}
}

func (s *server) write(nc net.Conn, cmd *wire.Command) {
	b, err := wire.AppendFrame(nil, cmd)
	if err != nil {
		s.t.Errorf("encoding: %v", err)
		return
	}
	s.mu.Lock()
	lock := s.conns[nc]
	s.mu.Unlock()
	if lock == nil {
		return // gone meanwhile
	}
	lock.Lock()
	defer lock.Unlock()
	_, _ = nc.Write(b)
}

func (s *server) on(code wire.RequestCode, f func(*wire.Command) *wire.Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script[code] = f
}

func (s *server) set(m mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode = m
}

// kill closes all connections, as a crash does, and refuses new ones.
func (s *server) kill() {
	s.set(absent)
	for _, nc := range s.connections() {
		_ = nc.Close()
	}
}

func (s *server) connections() []net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.conns))
}

// push sends a request of the broker to all its clients.
func (s *server) push(req *wire.Command) {
	for _, nc := range s.connections() {
		s.write(nc, req)
	}
}

// requests returns what came with a code, oldest first.
func (s *server) requests(code wire.RequestCode) []*wire.Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*wire.Command
	for _, cmd := range s.seen {
		if cmd.RequestCode() == code && !cmd.IsResponse() {
			list = append(list, cmd)
		}
	}
	return list
}

// answers returns the responses that came from clients.
func (s *server) answers() []*wire.Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*wire.Command
	for _, cmd := range s.seen {
		if cmd.IsResponse() {
			list = append(list, cmd)
		}
	}
	return list
}

func refuse(code wire.ResponseCode, remark string) func(*wire.Command) *wire.Command {
	return func(req *wire.Command) *wire.Command { return wire.NewResponse(req, code, remark) }
}

func answerWith(h wire.Header) func(*wire.Command) *wire.Command {
	return func(req *wire.Command) *wire.Command {
		resp := wire.NewResponse(req, wire.RespSuccess, "")
		resp.Ext = wire.AppendFields(resp.Ext, h)
		return resp
	}
}

func answerBody(t *testing.T, body any) func(*wire.Command) *wire.Command {
	t.Helper()
	text, err := wire.EncodeBody(body, wire.Fastjson)
	if err != nil {
		t.Fatal(err)
	}
	return func(req *wire.Command) *wire.Command {
		resp := wire.NewResponse(req, wire.RespSuccess, "")
		resp.Body = text
		return resp
	}
}

// serveRoutes makes s a name server that knows these topics and no others.
func (s *server) serveRoutes(routes map[string]*wire.TopicRoute) {
	s.on(wire.ReqGetRoute, func(req *wire.Command) *wire.Command {
		data := routes[req.Ext.Get("topic")]
		if data == nil {
			return wire.NewResponse(req, wire.RespTopicNotExist, "No topic route info in name server for the topic")
		}
		return answerBody(s.t, data)(req)
	})
}

// routeTo is a route with four queues on each of these brokers, whose masters' addresses are name:1.
func routeTo(brokers ...string) *wire.TopicRoute {
	data := &wire.TopicRoute{FilterServerTable: map[string][]string{}}
	for _, name := range brokers {
		data.Brokers = append(data.Brokers, wire.BrokerData{Name: name, Cluster: "c", Addrs: wire.IDTable[string]{0: name + ":1"}})
		data.Queues = append(data.Queues, wire.QueueData{BrokerName: name, Perm: 6, ReadQueues: 4, WriteQueues: 4})
	}
	return data
}

// start returns a running client; edit changes its configuration first.
func (n *network) start(t *testing.T, edit func(*Config)) *Client {
	t.Helper()
	cfg := Config{
		NameServers: []string{"ns:1"}, ClientID: "127.0.0.1@me", Dial: n.dial, Logger: slog.New(slog.DiscardHandler),
		Rand: func() float64 { return 0 }, // no jitter, first choice
	}
	if edit != nil {
		edit(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, c) })
	return c
}

func shut(t *testing.T, c *Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		t.Errorf("closing: %v", err)
	}
}

// one is a network of one name server and one broker "a" that serve topic T.
func one(t *testing.T) (*network, *server, *server) {
	t.Helper()
	n := newNetwork(t)
	ns, broker := n.add("ns:1"), n.add("a:1")
	ns.serveRoutes(map[string]*wire.TopicRoute{"T": routeTo("a")})
	return n, ns, broker
}

func wait(d time.Duration) { <-time.NewTimer(d).C }
