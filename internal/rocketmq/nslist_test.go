package rocketmq

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// pipes is a listener whose connections stay in the bubble.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case nc := <-p.conns:
		return nc, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.done:
		return nil, errRefused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// web is the web server that lists name servers.
type web struct {
	mu     sync.Mutex
	answer func(http.ResponseWriter, *http.Request)
	asked  []time.Time
	pipes  *pipes
}

func newWeb(t *testing.T) *web {
	t.Helper()
	w := &web{pipes: &pipes{conns: make(chan net.Conn), done: make(chan struct{})}}
	s := &http.Server{Handler: http.HandlerFunc(func(out http.ResponseWriter, req *http.Request) {
		w.mu.Lock()
		answer := w.answer
		w.asked = append(w.asked, time.Now())
		w.mu.Unlock()
		answer(out, req)
	}), ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.Serve(w.pipes); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			t.Errorf("serving: %v", err)
		}
	}()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing the web server: %v", err)
		}
		<-ended
	})
	return w
}

func (w *web) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: w.pipes.dial, DisableKeepAlives: true}}
}

func (w *web) does(f func(http.ResponseWriter, *http.Request)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = f
}

func (w *web) says(status int, text string) {
	w.does(func(out http.ResponseWriter, _ *http.Request) {
		out.WriteHeader(status)
		_, _ = io.WriteString(out, text)
	})
}

func (w *web) times() []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked)
}

const listAt = "http://list:8080/rocketmq/nsaddr"

func (n *network) startListed(t *testing.T, w *web) *Client {
	t.Helper()
	return n.start(t, func(cfg *Config) { cfg.NameServers, cfg.HTTP = []string{listAt}, w.client() })
}

// The list is asked for at the start and every 2 minutes; what it says is in force at once, and a bad answer changes nothing.
func TestNameServersFromAList(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, first, _ := one(t)
		second := n.add("ns:2")
		second.serveRoutes(map[string]*wire.TopicRoute{"T": routeTo("a"), "U": routeTo("a")})
		w := newWeb(t)
		w.says(http.StatusOK, "\n ns:1; \r\nmore\n")
		begin := time.Now()
		c := n.startListed(t, w)
		if qs, err := c.Queues(t.Context(), "T"); err != nil || len(qs) != 4 || !slices.Equal(c.NameServers(), []string{"ns:1"}) {
			t.Fatalf("queues %v, %v; name servers %v", qs, err, c.NameServers())
		}
		w.says(http.StatusOK, "ns:2;ns:3")
		first.kill()
		wait(2*time.Minute + time.Second)
		if _, err := c.Queues(t.Context(), "U"); err != nil || !slices.Equal(c.NameServers(), []string{"ns:2", "ns:3"}) {
			t.Errorf("after the list changed: %v; name servers %v", err, c.NameServers())
		}
		for _, bad := range []func(http.ResponseWriter, *http.Request){
			func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusInternalServerError) },
			func(out http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(out, "<html>soon back</html>") },
			func(out http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(out, " \n") },
			func(out http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(out, "http://other/list") },
			func(out http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(out, strings.Repeat("a:1;", listBytes/4+1))
			},
			func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() },
		} {
			w.does(bad)
			wait(2*time.Minute + 5*time.Second)
			if !slices.Equal(c.NameServers(), []string{"ns:2", "ns:3"}) {
				t.Errorf("a bad answer made the name servers %v", c.NameServers())
			}
		}
		asked := w.times()
		if len(asked) < 8 || asked[0].Sub(begin) > time.Second {
			t.Fatalf("asked %d times, the first after %s", len(asked), asked[0].Sub(begin))
		}
		for i, at := range asked[1:] {
			if gap := at.Sub(asked[i]); gap < 2*time.Minute || gap > 2*time.Minute+listTimeout {
				t.Errorf("asked again after %s, want 2 minutes", gap)
			}
		}
	})
}

// A client needs no list to start: it says what it waits for, and works as soon as the list is there.
func TestListOfNameServersThatIsAway(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, _ := one(t)
		w := newWeb(t)
		w.says(http.StatusBadGateway, "")
		c := n.startListed(t, w)
		_, err := c.Queues(t.Context(), "T")
		if !errors.Is(err, ErrNoNameServer) || !IsRetriable(err) || !strings.Contains(err.Error(), listAt+" answers 502") {
			t.Errorf("without a list: %v", err)
		}
		wait(10 * time.Minute)
		if asked := w.times(); len(asked) < 10 || asked[len(asked)-1].Sub(asked[len(asked)-2]) > c.cfg.BackoffMax+time.Second {
			t.Errorf("asked %d times in 10 minutes", len(asked))
		}
		w.says(http.StatusOK, "ns:1")
		wait(c.cfg.BackoffMax + time.Second)
		if _, err := c.Queues(t.Context(), "T"); err != nil {
			t.Errorf("with a list: %v", err)
		}
		w.does(func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() })
		other := n.start(t, func(cfg *Config) {
			cfg.NameServers, cfg.HTTP, cfg.ClientID = []string{listAt}, w.client(), "127.0.0.1@other"
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := other.Queues(ctx, "T"); !errors.Is(err, ErrNoNameServer) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while the list does not answer: %v", err)
		}
	})
}
