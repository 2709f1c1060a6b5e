package daemon

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"sync/atomic"

	"github.com/streamd/streamd/internal/broker/acl"
	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/plain"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// guard is who an embedded broker lets in. Its files can be read again while it serves. Safe for concurrent use.
type guard struct {
	config *config.Embedded
	who    string // whose it is, for errors; may be empty
	rules  atomic.Pointer[acl.List]
	tls    atomic.Pointer[tls.Config]
}

func newGuard(e *config.Embedded, who string) (*guard, error) {
	g := &guard{config: e, who: who}
	return g, g.read()
}

// read reads the files. After an error what was read before stays in force.
func (g *guard) read() error {
	fresh, err := readEntry(g.config, g.who)
	if err != nil {
		return err
	}
	g.use(fresh)
	return nil
}

// entry is what the files say of who is let in.
type entry struct {
	rules *acl.List   // nil: everybody may do everything
	tls   *tls.Config // nil: clients speak plainly
}

// use puts what was read in force, and returns what was.
func (g *guard) use(fresh entry) (before entry) {
	return entry{g.rules.Swap(fresh.rules), g.tls.Swap(fresh.tls)}
}

func readEntry(e *config.Embedded, who string) (fresh entry, err error) {
	if e.ACL != "" {
		if fresh.rules, err = acl.Read(e.ACL); err != nil {
			return entry{}, unusable(&fileError{"acl", err}, who, e.Written, e.Key)
		}
	}
	if e.TLS != nil {
		if fresh.tls, err = serverTLS(e.TLS); err != nil {
			return entry{}, unusable(err, who, e.Written, e.Key)
		}
	}
	return fresh, nil
}

// fileFault is the exit code of a file that cannot be used: one that cannot be read is the environment's fault.
func fileFault(err error) int {
	if _, unread := errors.AsType[*fs.PathError](err); unread {
		return exitcode.Environment
	}
	return exitcode.Usage
}

func serverTLS(c *config.ServerTLS) (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, pairError("tls.", c.Key, fmt.Errorf("reading the broker's certificate %s and its key %s: %w", c.Cert, c.Key, err))
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}}
	if c.ClientCA != "" {
		if out.ClientCAs, err = authorities(c.ClientCA); err != nil {
			return nil, &fileError{"tls.client_ca", err}
		}
		out.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return out, nil
}

// whereAccountsAre follows the words of RocketMQ 5 in a refusal: there they would mean ACL 2.0, which mqadmin changes.
const whereAccountsAre = " This broker has its accounts in the file that its acl names."

// access is broker.Config.Access; nil when everybody may do everything.
func (g *guard) access() func(netip.Addr, *wire.Command) (string, bool) {
	if g.config.ACL == "" {
		return nil
	}
	return func(from netip.Addr, cmd *wire.Command) (string, bool) {
		if refused := g.rules.Load().Check(from, cmd); refused != nil {
			return refused.Remark + whereAccountsAre, false
		}
		return "", true
	}
}

// secure is broker.Config.TLS; nil when clients speak plainly.
func (g *guard) secure() *tls.Config {
	if g.config.TLS == nil {
		return nil
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return g.tls.Load(), nil },
	}
}

// describe says in a word or two who is let in.
func (g *guard) describe() string {
	switch {
	case g.config.ACL != "" && g.config.TLS != nil:
		return "access control with " + plain.Count(g.rules.Load().Accounts(), "account") + ", TLS"
	case g.config.ACL != "":
		return "access control with " + plain.Count(g.rules.Load().Accounts(), "account")
	case g.config.TLS != nil:
		return "TLS"
	}
	return "open to everybody who can connect"
}
