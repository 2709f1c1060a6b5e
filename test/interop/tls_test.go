package interop

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/test/interop/cluster"
)

const (
	tlsTopic, tlsOutput = "TLSOrders", "TLSInvoices"
	tlsGroup            = "tls-billing"
)

// tlsPlace is a name server and a broker that speak TLS alone, with the files of both sides.
type tlsPlace struct {
	*place
	servers, own credentials
	properties   string // of every JVM
}

// newTLSPlace starts the servers with certificates of the authority.
func newTLSPlace(t *testing.T, a *authority) *tlsPlace {
	t.Helper()
	dir := t.TempDir()
	p := &tlsPlace{servers: credentialsIn(filepath.Join(dir, "servers")), own: credentialsIn(filepath.Join(dir, "streamd")), properties: filepath.Join(dir, "tls.properties")}
	a.write(t, p.servers)
	a.write(t, p.own)
	p.demand(t, "none")
	p.place = newPlace(t, cluster.Options{Broker: quickRetries(), JVM: []string{
		"-Dtls.server.mode=enforcing", "-Dtls.enable=true", "-Dtls.config.file=" + p.properties, "-XX:TieredStopAtLevel=1",
	}})
	return p
}

// demand writes whether the servers want a certificate of who connects: none or require. It counts at their next start.
func (p *tlsPlace) demand(t *testing.T, auth string) {
	t.Helper()
	text := fmt.Sprintf(`tls.test.mode.enable=false
tls.server.need.client.auth=%s
tls.server.authClient=true
tls.server.trustCertPath=%[2]s
tls.server.certPath=%[3]s
tls.server.keyPath=%[4]s
tls.client.authServer=true
tls.client.trustCertPath=%[2]s
tls.client.certPath=%[3]s
tls.client.keyPath=%[4]s
`, auth, p.servers.ca, p.servers.cert, p.servers.key)
	if err := os.WriteFile(p.properties, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// restart kills both servers, lets change happen, and starts them again.
func (p *tlsPlace) restart(t *testing.T, change func()) {
	t.Helper()
	p.Brokers[0].Kill()
	p.StopNameServer()
	change()
	if err := p.StartNameServer(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	if err := p.Brokers[0].Start(within(t, patience)); err != nil {
		t.Fatal(err)
	}
}

// produce runs `streamd produce` with some TLS, or without when it is empty.
func (p *tlsPlace) produce(t *testing.T, secured, body string, flags ...string) (said string, err error) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "streamd.yaml")
	text := fmt.Sprintf(configText, p.Addr, secured, "never-started", "ledger", "", tlsGroup, tlsTopic, "", "state")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(within(t, patience), built(t, shared.streamd), append([]string{"produce", "-c", config, "--topic", tlsTopic}, flags...)...)
	cmd.Stdin = strings.NewReader(body + "\n")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}

// refused checks that a message cannot be sent, and that the command says where, why, and what to do instead.
func (p *tlsPlace) refused(t *testing.T, secured string, says ...string) {
	t.Helper()
	said, err := p.produce(t, secured, "refused")
	if err == nil {
		t.Errorf("with%s: sent: %s", secured, said)
	}
	for _, text := range says {
		if !strings.Contains(said, text) {
			t.Errorf("with%s it does not say %q but:\n%s", secured, text, said)
		}
	}
}

// withTLS is the config's key.
func withTLS(c credentials, server string) string {
	keys := fmt.Sprintf("ca: %q", c.ca)
	if c.cert != "" {
		keys += fmt.Sprintf(", cert: %q, key: %q", c.cert, c.key)
	}
	if server != "" {
		keys += ", server_name: " + server
	}
	return ", tls: {" + keys + "}"
}

// TestTLS_realBroker: streamd consumes, retries, dead-letters and produces through a name server and a broker that speak TLS
// alone; what does not fit is refused in plain words; and renewed certificates, of another authority at that, are used at the
// next connection, while the process runs.
func TestTLS_realBroker(t *testing.T) {
	t.Parallel()
	first, second := newAuthority(t, "authority of the first year"), newAuthority(t, "authority of the second year")
	p := newTLSPlace(t, first)
	for _, topic := range []string{tlsTopic, tlsOutput, "STREAMD_FAILURES"} {
		p.topic(t, topic, 2)
	}
	others := credentialsIn(filepath.Join(t.TempDir(), "others"))
	second.write(t, others)
	anonymous := credentials{ca: p.own.ca}

	p.refused(t, "", p.Addr, "before it said anything; when it wants TLS, set tls of the broker")
	p.refused(t, withTLS(credentials{ca: others.ca}, secureName), p.Addr, "signed by none of the authorities in "+others.ca+" (tls.ca)")
	p.refused(t, withTLS(anonymous, "another.example.org"), p.Addr, "is for "+secureName+" and not for another.example.org", "tls.server_name")
	p.refused(t, withTLS(anonymous, ""), p.Addr, "is for "+secureName+" and not for 127.0.0.1", "tls.server_name")

	m := p.streamd(t, stream{
		group: tlsGroup, topic: tlsTopic, keys: quickLevels + "\noutputs: {topic: " + tlsOutput + "}", handler: "emit: " + tlsOutput,
		broker: strings.TrimPrefix(withTLS(p.own, secureName), ", "),
	}).ready(t)
	for _, body := range []string{"ok 1", "fail-1 2", "reject 3"} {
		if said, err := p.produce(t, withTLS(anonymous, secureName), body); err != nil {
			t.Fatalf("producing: %v: %s", err, said)
		}
	}
	m.handled(t, 2, time.Minute)
	operator := newClient(t, p.Addr, secured(t, p.own))
	readAll(t, operator, "tls-reader", wire.DLQTopic(tlsGroup), 1)
	readAll(t, operator, "tls-reader", tlsOutput, 2)
	until(t, time.Minute, "everything settled, as the operator sees it over TLS", func() (bool, string) {
		g, err := m.groupStatus(t, tlsGroup)
		return err == nil && len(g.Queues) > 0 && g.Lag == 0, fmt.Sprint(asJSON(g), err)
	})

	p.restart(t, func() {
		second.write(t, p.servers)
		second.write(t, p.own)
		p.demand(t, "require")
	})
	if said, err := p.produce(t, withTLS(p.own, secureName), "ok 4", "--retry-for", "150s"); err != nil {
		t.Fatalf("producing with the renewed certificates: %v: %s", err, said)
	}
	m.handled(t, 3, time.Minute)
	renewed := newClient(t, p.Addr, secured(t, p.own))
	until(t, time.Minute, "the output of what came after the restart", func() (bool, string) {
		all := readAllNow(t, renewed, tlsOutput)
		return slices.ContainsFunc(all, func(s stored) bool { return strings.Contains(s.Text, "ok 4") }), fmt.Sprint(all)
	})

	p.refused(t, withTLS(anonymous, secureName), p.Addr, "the server wants a certificate of its clients; set tls.cert and tls.key")
	first.write(t, others)
	others.ca = p.own.ca
	p.refused(t, withTLS(others, secureName), p.Addr, others.cert+" (tls.cert)")
	m.stop(t)
}
