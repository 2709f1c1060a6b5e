package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/test/interop/cluster"
)

// toolsOver is the official tools for a RocketMQ that speaks TLS: they trust the authority in ca, and mqadmin signs with a
// secret.
func toolsOver(t *testing.T, address, ca, secret string) *place {
	t.Helper()
	dir := t.TempDir()
	c, err := cluster.Tools(t.Context(), dir, address, "-Dtls.enable=true", "-Dtls.test.mode.enable=false", "-Dtls.client.authServer=true",
		"-Dtls.client.trustCertPath="+ca, "-XX:TieredStopAtLevel=1")
	if err != nil {
		t.Fatal(err)
	}
	keys := strings.ReplaceAll(toolsKey()["tools.yml"], secSecret, secret)
	if err := os.WriteFile(filepath.Join(dir, "tools-home", "conf", "tools.yml"), []byte(keys), 0o600); err != nil {
		t.Fatal(err)
	}
	return &place{Cluster: c}
}

// TestSecurity_officialClientsOfTheEmbeddedBroker: Java's and Go's clients and mqadmin come in with keys and over TLS, produce,
// consume and administrate as their rights say; a wrong key is refused with code 16, and an authority that the client does not
// know by the client.
func TestSecurity_officialClientsOfTheEmbeddedBroker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own, strangers := credentialsIn(filepath.Join(dir, "broker")), credentialsIn(filepath.Join(dir, "strangers"))
	newAuthority(t, "authority of the broker").write(t, own)
	newAuthority(t, "authority of strangers").write(t, strangers)
	address := keep(t, "--tls-cert", own.cert, "--tls-key", own.key)
	operator := newClient(t, address, secured(t, own), func(c *rocketmq.Config) {
		c.Account, c.Sign = func() string { return "operator" }, rocketmq.Signer("operator", secSecret)
	})
	p := toolsOver(t, address, own.ca, secSecret)
	p.admin = p.Admin(t)
	for _, topic := range []string{secTopic, secOutput} {
		p.topic(t, topic, 2)
	}

	java := p.java(t, "Secure", "no-output-app", secSecret, "-", "-", secTopic, secOutput, secGroup, "4")
	waitLine(t, java, line("output refused 16"))
	peer := p.goPeer(t, "secure", "whole-app", secSecret, secTopic, secOutput, secGroup, "4")
	waitLine(t, peer, line("sent output"))
	waitLine(t, java, line("#ready"))
	waitLine(t, peer, line("#ready"))
	until(t, 2*time.Minute, "the two members of the group get all messages", func() (bool, string) {
		got := map[string]bool{}
		for _, l := range append(java.Lines(), peer.Lines()...) {
			if w := strings.Fields(l); len(w) > 1 && w[0] == "got" {
				got[w[1]] = true
			}
		}
		return len(got) == 8, fmt.Sprint(got)
	})
	if out := p.run(t, "consumerProgress", "-g", secGroup); !strings.Contains(out, secTopic) {
		t.Errorf("mqadmin sees\n%s", out)
	}

	liarJava := p.java(t, "Secure", "whole-app", "another-secret", "-", "-", secTopic, secOutput, secGroup, "1")
	liarGo := p.goPeer(t, "secure", "whole-app", "another-secret", secTopic, secOutput, secGroup, "1")
	waitLine(t, liarJava, line("refused 16"))
	waitLine(t, liarGo, line("refused: "))
	liarAdmin := toolsOver(t, address, own.ca, "another-secret").Admin(t)
	until(t, 2*time.Minute, "mqadmin with a wrong secret is refused", func() (bool, string) { // its first handshakes may take longer than it waits
		out, err := liarAdmin.Run(t.Context(), "updateTopic", "-c", "DefaultCluster", "-t", "Forged")
		return strings.Contains(out, "CODE: 16"), fmt.Sprint(err, out)
	})
	suspicious := toolsOver(t, address, strangers.ca, secSecret)
	waitLine(t, suspicious.java(t, "Secure", "whole-app", secSecret, "-", "-", secTopic, secOutput, secGroup, "1"), line("no route of "+secTopic))
	if n := len(readAllNow(t, operator, secTopic)); n != 8 {
		t.Errorf("%d messages stored, want the 8 of those who may", n)
	}
	if n := len(readAllNow(t, operator, secOutput)); n != 1 {
		t.Errorf("%d outputs stored, want that of the one who may", n)
	}
}
