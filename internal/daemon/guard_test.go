package daemon

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// renew writes a new certificate and key into a folder.
func renew(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"elsewhere.example.org"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "c.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	put(t, filepath.Join(dir, "c.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const (
	oneAccount  = "accounts: [{accessKey: billing-app, secretKey: secret-of-billing}]\n"
	twoAccounts = "accounts: [{accessKey: billing-app, secretKey: secret-of-billing}, {accessKey: operator, secretKey: secret-of-op}]\n"
)

// A broker takes new rules and a renewed certificate while it runs, and its own client goes on coming in; bad files change
// nothing.
func TestGuardReadsItsFilesAgain(t *testing.T) {
	dir := t.TempDir()
	renew(t, dir)
	put(t, filepath.Join(dir, "acl.yml"), oneAccount)
	e := &config.Embedded{
		Listen: "127.0.0.1:0", Flush: "sync", ACL: filepath.Join(dir, "acl.yml"),
		TLS: &config.ServerTLS{Cert: filepath.Join(dir, "c.pem"), Key: filepath.Join(dir, "c.key")},
	}
	log := slog.New(slog.DiscardHandler)
	b, err := startEmbedded(t.Context(), e, "broker main", nil, log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	client, err := ClientConfig(&config.Broker{Name: "main", Embedded: e}, log)
	if err != nil {
		t.Fatal(err)
	}
	comesIn := func(when string, want bool) {
		t.Helper()
		nc, err := client.Dial(t.Context(), b.Address())
		if (err == nil) != want {
			t.Errorf("%s the client comes in: %v", when, err)
		}
		if nc != nil {
			if err := nc.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	comesIn("at first", true)
	renew(t, dir)
	comesIn("while the file is not the broker's", false)
	put(t, e.ACL, twoAccounts)
	if err := b.read(); err != nil || !strings.Contains(b.describe(), "2 accounts") {
		t.Errorf("reading again: %v, %s", err, b.describe())
	}
	comesIn("renewed", true)
	put(t, e.ACL, "accounts: 5\n")
	if err := b.read(); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "acl.yml:1:11") || !strings.Contains(b.describe(), "2 accounts") {
		t.Errorf("bad rules: %v, %s", err, b.describe())
	}
	put(t, e.ACL, twoAccounts)
	if err := os.Remove(e.TLS.Key); err != nil {
		t.Fatal(err)
	}
	if err := b.read(); exitcode.Of(err) != exitcode.Environment {
		t.Errorf("a key that is gone: %v", err)
	}
	comesIn("with what was read before,", true)
	if remark, ok := b.access()(netip.MustParseAddr("127.0.0.1"), &wire.Command{Code: int32(wire.ReqHeartbeat)}); ok || remark != "username cannot be null."+whereAccountsAre {
		t.Errorf("access without a key: %q, %t", remark, ok)
	}
}

func TestClientConfig(t *testing.T) {
	dir := t.TempDir()
	renew(t, dir)
	log := slog.New(slog.DiscardHandler)
	plain, err := ClientConfig(&config.Broker{NameServers: []string{"mq:9876"}}, log)
	if err != nil || plain.Dial != nil || plain.Account() != "" || plain.NameServers[0] != "mq:9876" {
		t.Errorf("plain = %+v, %v", plain, err)
	}
	whole := &config.Broker{
		NameServers: []string{"mq:9876"}, AccessKey: "k", SecretKey: "s",
		TLS: &config.ClientTLS{CA: filepath.Join(dir, "c.pem"), Cert: filepath.Join(dir, "c.pem"), Key: filepath.Join(dir, "c.key")},
	}
	if c, err := ClientConfig(whole, log); err != nil || c.Dial == nil || c.Account() == "" {
		t.Errorf("whole = %+v, %v", c, err)
	}
	for file, code := range map[string]int{"missing.pem": exitcode.Environment, "c.key": exitcode.Usage} {
		whole.TLS.CA = filepath.Join(dir, file)
		if _, err := ClientConfig(whole, log); exitcode.Of(err) != code || !strings.Contains(err.Error(), file) {
			t.Errorf("ca: %s: %v", file, err)
		}
	}
}

// What a running process cannot take over is named.
func TestReloadOfBrokersNeedsARestart(t *testing.T) {
	with := func(broker string) *config.Config {
		return parse(t, strings.Replace(base, `name_servers: ["127.0.0.1:9876"]`, broker, 1))
	}
	old := with("embedded: {topics: [{name: A}]}")
	if got := needsRestart(old, with("embedded: {topics: [{name: A}, {name: B}]}")); len(got) > 0 {
		t.Errorf("one more topic: %v", got)
	}
	for other, want := range map[string]string{
		"embedded: {flush: async}":                  "brokers[main].embedded.flush",
		"embedded: {retention: {age: 1h}}":          "brokers[main].embedded.retention.age",
		"embedded: {data_dir: other}, namespace: n": "brokers[main].namespace brokers[main].embedded.data_dir",
		"embedded: {}, heartbeat_v2: true":          "brokers[main].heartbeat_v2",
		"embedded: {}, tls: {}":                     "brokers[main].tls",
		"name_servers: 'a:1'":                       "brokers[main].name_servers brokers[main].embedded",
	} {
		if got := strings.Join(needsRestart(old, with(other)), " "); got != want {
			t.Errorf("%s: %s, want %s", other, got, want)
		}
	}
}

func TestTopicsGrowAndNeverShrink(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	e := &config.Embedded{Listen: "127.0.0.1:0", Topics: []config.Topic{{Name: "A", Queues: 4}}}
	b, err := startEmbedded(t.Context(), e, "broker main", []string{"A", "B"}, log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	queues := func(name string) int32 { c, _ := b.Topic(name); return c.WriteQueues }
	if queues("A") != 4 || queues("B") != devQueues {
		t.Errorf("A has %d, B %d", queues("A"), queues("B"))
	}
	for _, c := range []struct {
		given int
		want  int32
	}{{2, 4}, {6, 6}, {3, 6}} {
		e.Topics[0].Queues = c.given
		b.makeTopics(nil)
		if got := queues("A"); got != c.want {
			t.Errorf("A has %d queues after %d were asked for, want %d", got, c.given, c.want)
		}
	}
}
