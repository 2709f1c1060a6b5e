package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// addressList is a web server's list of name servers: the body of an HTTP GET is host:port;host:port. Java's client asks for
// one every 2 minutes (MQClientInstance.fetchNameServerAddr; consumer-semantics.md 1.6), and so does this. What was read last
// stays in force while the web server is silent or talks nonsense.
type addressList struct {
	url     string
	http    *http.Client
	every   time.Duration
	backoff func(failures int) time.Duration // while no list was ever read
}

// What bounds one question to the web server.
const (
	listTimeout = 3 * time.Second
	listBytes   = 64 << 10
)

// newListClient keeps no connection between two questions.
func newListClient() *http.Client {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, MaxResponseHeaderBytes: listBytes}
	return &http.Client{Transport: transport}
}

// follow asks for the list until ctx ends, and makes each new one the name servers in force.
func (n *nameServers) follow(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for failures := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		addrs, err := n.list.ask(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			failures = 0
			n.use(addrs)
		default:
			if failures++; failures == 1 || failures%10 == 0 {
				n.log.Warn("the list of name servers is not read, the last one stays in force", "error", err, "in_force", strings.Join(n.addrs(), ";"))
			}
			n.missed(err)
		}
		pause := n.list.every
		if len(n.addrs()) == 0 {
			pause = min(pause, n.list.backoff(failures))
		}
		timer.Reset(pause)
	}
}

// use makes addrs the name servers in force. Who talks to one that is gone is told, and asks another.
func (n *nameServers) use(addrs []string) {
	known := make(map[string]bool, len(addrs))
	for _, a := range addrs {
		known[a] = true
	}
	old := n.addrs()
	if slices.Equal(old, addrs) {
		return
	}
	n.log.Info("name servers are listed", "list", n.list.url, "now", strings.Join(addrs, ";"), "before", strings.Join(old, ";"))
	n.set(addrs, nil)
	n.current.Store(0)
	n.pool.keep(known)
}

// missed notes why there is no list, for those who wait for the first one.
func (n *nameServers) missed(err error) {
	if len(n.addrs()) == 0 {
		n.set(nil, err)
	}
}

func (l *addressList) ask(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	text, err := l.get(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking for the list of name servers: %w", err) // names the address
	}
	addrs, err := readList(text)
	if err != nil {
		return nil, fmt.Errorf("reading the list of name servers at %s: %w", l.url, err)
	}
	return addrs, nil
}

func (l *addressList) get(ctx context.Context) (text string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url, nil)
	if err != nil {
		return "", err
	}
	resp, err := l.http.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s", l.url, resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, listBytes+1))
	if err != nil {
		return "", err
	}
	if len(body) > listBytes {
		return "", fmt.Errorf("%s answers with more than %d bytes", l.url, listBytes)
	}
	return string(body), nil
}

// readList reads the first line, as Java's client does (DefaultTopAddressing.clearNewLine).
func readList(text string) ([]string, error) {
	line, _, _ := strings.Cut(strings.TrimLeft(text, " \t\r\n"), "\n")
	line = strings.Trim(line, " \t\r;,")
	addrs, err := ParseNameServers(line)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(addrs, isList) {
		return nil, errors.New("it lists another list")
	}
	return addrs, nil
}
