package daemon

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/logtest"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Certificates are renewed under a running client: the next connection has them. Bad files change nothing, and are told once.
func TestClientFilesAreReadAtEachConnection(t *testing.T) {
	dir := t.TempDir()
	renew(t, dir)
	var out logtest.Log
	entry := &config.Broker{Name: "main", NameServers: []string{"mq:9876"}, TLS: &config.ClientTLS{
		CA: filepath.Join(dir, "c.pem"), Cert: filepath.Join(dir, "c.pem"), Key: filepath.Join(dir, "c.key"),
	}}
	_, proof, err := clientConfig(entry, slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	current := func() []byte {
		t.Helper()
		return proof.files.current().Certificates[0].Certificate[0]
	}
	first := current()
	renew(t, dir)
	second := current()
	if bytes.Equal(first, second) {
		t.Error("the renewed certificate is not used")
	}
	put(t, entry.TLS.Key, "no key")
	for range 3 {
		if !bytes.Equal(current(), second) {
			t.Error("a bad file took the place of a good one")
		}
	}
	if n := out.Count("stay in use"); n != 1 || !out.Has("c.key") {
		t.Errorf("told %d times: %s", n, out.String())
	}
	b, c := &brokers{trusts: map[string]*trust{"main": proof}}, &config.Config{Brokers: []config.Broker{*entry}}
	if _, err := b.reread(c); err == nil || !strings.Contains(err.Error(), "c.key") || !strings.Contains(err.Error(), "broker main") {
		t.Errorf("a reload with a bad key: %v", err)
	}
	renew(t, dir)
	use, err := b.reread(c)
	if err != nil || bytes.Equal(current(), second) {
		t.Errorf("a reload with good files: %v", err)
	}
	last := proof.files.last
	undo := use()
	if proof.files.last == last {
		t.Error("what was read is not used")
	}
	if undo(); proof.files.last != last {
		t.Error("what was used is not taken back")
	}
	if err := os.Remove(entry.TLS.CA); err != nil {
		t.Fatal(err)
	}
	if _, _, err := clientConfig(entry, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "c.pem") {
		t.Errorf("a start without the authorities: %v", err)
	}
}

// A reload takes other keys: the next request is signed with them, or not at all.
func TestRekey(t *testing.T) {
	entry := &config.Broker{Name: "main", NameServers: []string{"mq:9876"}, AccessKey: "app", SecretKey: "old-secret"}
	c, proof, err := clientConfig(entry, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	signed := func(sign func(*wire.Command) error) string {
		t.Helper()
		cmd := wire.NewRequest(&wire.RouteRequest{Topic: "T"}, nil)
		if err := sign(cmd); err != nil {
			t.Fatal(err)
		}
		return cmd.Ext.Get("Signature")
	}
	if signed(c.Sign) != signed(rocketmq.Signer("app", "old-secret")) || c.Account() != "app" {
		t.Error("signed with something else")
	}
	b := &brokers{trusts: map[string]*trust{"main": proof}}
	next := *entry
	next.SecretKey = "new-secret"
	b.settle(t.Context(), &config.Config{Brokers: []config.Broker{next}})
	if signed(c.Sign) != signed(rocketmq.Signer("app", "new-secret")) {
		t.Error("the new secret is not used")
	}
	other := next
	other.AccessKey = "app-2"
	b.settle(t.Context(), &config.Config{Brokers: []config.Broker{other}})
	if signed(c.Sign) != signed(rocketmq.Signer("app-2", "new-secret")) || c.Account() != "app-2" {
		t.Error("the new account is not used")
	}
	bare := other
	bare.AccessKey, bare.SecretKey = "", ""
	b.settle(t.Context(), &config.Config{Brokers: []config.Broker{bare}})
	if signed(c.Sign) != "" || c.Account() != "" {
		t.Error("still signed")
	}
	next = other
	old, changed := &config.Config{Brokers: []config.Broker{*entry}}, &config.Config{Brokers: []config.Broker{next}}
	if keys := needsRestart(old, changed); len(keys) > 0 || sameConfig(old, changed) {
		t.Errorf("other keys need a restart: %v", keys)
	}
}
