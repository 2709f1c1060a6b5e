package daemon

import (
	"log/slog"
	"sync/atomic"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// ClientConfig is how to talk to a broker of a config: its name servers, signed and over TLS as it says. Errors carry their
// exit code. A broker whose certificate is not verified is warned of.
func ClientConfig(b *config.Broker, log *slog.Logger) (rocketmq.Config, error) {
	c, _, err := clientConfig(b, log)
	return c, err
}

// trust is what a client proves itself and its cluster by, and what may change while it runs.
type trust struct {
	files *clientFiles // nil without TLS
	keys  atomic.Pointer[keys]
}

// keys are an account and what signs for it. Without an account nothing is signed.
type keys struct {
	account string
	sign    func(*wire.Command) error
}

// use takes other keys from the next request on.
func (t *trust) use(b *config.Broker) {
	k := &keys{account: b.AccessKey}
	if k.account != "" {
		k.sign = rocketmq.Signer(b.AccessKey, b.SecretKey)
	}
	t.keys.Store(k)
}

func (t *trust) account() string { return t.keys.Load().account }

func (t *trust) sign(cmd *wire.Command) error {
	if k := t.keys.Load(); k.sign != nil {
		return k.sign(cmd)
	}
	return nil
}

// sameKey is for keys that people write as they are.
func sameKey(key string) string { return key }

func clientConfig(b *config.Broker, log *slog.Logger) (rocketmq.Config, *trust, error) {
	c := rocketmq.Config{NameServers: b.Servers(), Logger: log, Namespace: b.Namespace, NamespaceV2: b.NamespaceV2, ShortHeartbeats: b.HeartbeatV2}
	t := &trust{}
	t.use(b)
	c.Account, c.Sign = t.account, t.sign
	var err error
	if t.files, err = newClientFiles(b, log); err != nil {
		return c, nil, unusable(err, "tls of broker "+b.Name, b.Written, sameKey)
	}
	if t.files != nil {
		c.Dial = rocketmq.TLSDialer(t.files.source())
	}
	if b.TLS != nil && b.TLS.SkipVerify {
		log.Warn("the broker's certificate is not verified: anybody on the way may read and change everything", "key", "tls.skip_verify")
	}
	return c, t, nil
}
