package brokersuite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// callTimeout is how long whatever has to come may take: held pulls of a real broker come up to 5 s late, and a slow machine must
// not fail a scenario.
const callTimeout = 2 * time.Minute

// peer is one connection of a client, which says that it is Java 5.3.3.
type peer struct {
	tb   testing.TB
	conn net.Conn
	done chan struct{}

	mu     sync.Mutex
	opaque int32
	waits  map[int32]chan *wire.Command
	serve  map[wire.RequestCode]func(*wire.Command) *wire.Command
	pushed []*wire.Command
	news   chan struct{} // closed when something was pushed
	err    error
}

func dial(tb testing.TB, address string) *peer {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), callTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		tb.Fatal(err)
	}
	p := &peer{
		tb: tb, conn: conn, done: make(chan struct{}), waits: make(map[int32]chan *wire.Command),
		serve: make(map[wire.RequestCode]func(*wire.Command) *wire.Command), news: make(chan struct{}),
	}
	go p.read()
	tb.Cleanup(p.close)
	return p
}

func (p *peer) close() {
	if err := p.conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		p.tb.Logf("closing a connection: %v", err)
	}
	<-p.done
}

func (p *peer) address() string { return p.conn.LocalAddr().String() }

func (p *peer) read() {
	defer close(p.done)
	in := bufio.NewReader(p.conn)
	for {
		c, err := readCommand(in)
		if err != nil {
			p.mu.Lock()
			p.err = err
			p.mu.Unlock()
			return
		}
		if c.IsResponse() {
			p.answered(c)
			continue
		}
		p.wasPushed(c)
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
	c := new(wire.Command)
	return c, c.Decode(content)
}

func (p *peer) answered(c *wire.Command) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ch := p.waits[c.Opaque]; ch != nil {
		delete(p.waits, c.Opaque)
		ch <- c
	}
}

func (p *peer) wasPushed(c *wire.Command) {
	p.mu.Lock()
	p.pushed = append(p.pushed, c)
	close(p.news)
	p.news = make(chan struct{})
	serve := p.serve[c.RequestCode()]
	p.mu.Unlock()
	if serve == nil {
		return
	}
	if a := serve(c); a != nil {
		a.Opaque, a.Flag = c.Opaque, wire.FlagResponse
		p.write(a)
	}
}

// answer sets how the peer answers a code that the broker asks it.
func (p *peer) answer(code wire.RequestCode, f func(*wire.Command) *wire.Command) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serve[code] = f
}

func (p *peer) write(c *wire.Command) {
	c.Language, c.Version = wire.LanguageJava, int32(wire.Version5_3_3)
	frame, err := wire.AppendFrame(nil, c)
	if err != nil {
		p.tb.Errorf("encoding a frame: %v", err)
		return
	}
	if _, err := p.conn.Write(frame); err != nil {
		p.tb.Errorf("writing a frame: %v", err)
	}
}

// start sends a request; its answer comes over the channel.
func (p *peer) start(c *wire.Command) <-chan *wire.Command {
	ch := make(chan *wire.Command, 1)
	p.mu.Lock()
	p.opaque++
	c.Opaque = p.opaque
	p.waits[c.Opaque] = ch
	p.mu.Unlock()
	p.write(c)
	return ch
}

// await returns the answer of a started request. A connection that ended is the answer nil.
func (p *peer) await(ch <-chan *wire.Command) *wire.Command {
	p.tb.Helper()
	timer := time.NewTimer(callTimeout)
	defer timer.Stop()
	select {
	case a := <-ch:
		return a
	case <-p.done:
		return nil
	case <-timer.C:
		p.tb.Fatal("no answer came")
		return nil
	}
}

func (p *peer) oneway(code wire.RequestCode, f fields, body []byte) {
	p.write(&wire.Command{Code: int32(code), Opaque: -1, Flag: wire.FlagOneway, Ext: f.list(), Body: body})
}

// waitPushed returns the first n requests of a code that the broker has sent.
func (p *peer) waitPushed(code wire.RequestCode, n int) ([]*wire.Command, error) {
	timer := time.NewTimer(callTimeout)
	defer timer.Stop()
	for {
		p.mu.Lock()
		var found []*wire.Command
		for _, c := range p.pushed {
			if c.RequestCode() == code {
				found = append(found, c)
			}
		}
		news := p.news
		p.mu.Unlock()
		if len(found) >= n {
			return found[:n], nil
		}
		select {
		case <-news:
		case <-p.done:
			return found, p.err
		case <-timer.C:
			return found, fmt.Errorf("%d times %v came within %s, %d were expected", len(found), code, callTimeout, n)
		}
	}
}

// notified is how many 40 the broker has sent so far.
func (p *peer) notified() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, c := range p.pushed {
		if c.RequestCode() == wire.ReqNotifyConsumerIDsChanged {
			n++
		}
	}
	return n
}
