package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/test/interop/cluster"
)

// keep starts an embedded broker with access control, and with more options. It has the accounts of TestSecurity_leastRights,
// in the format of 4.x, and one that may do all but produce outputs.
func keep(t *testing.T, more ...string) (address string) {
	t.Helper()
	var text strings.Builder
	text.WriteString("accounts:\n- {accessKey: operator, secretKey: " + secSecret + ", admin: true}\n")
	for account, missing := range map[string]string{"whole-app": "", "no-topic-app": secTopic, "no-group-app": secGroup, "no-output-app": secOutput + " STREAMD_FAILURES"} {
		right := func(name, right string) string {
			if strings.Contains(missing, name) {
				right = "DENY"
			}
			return fmt.Sprintf("'%s=%s'", name, right)
		}
		fmt.Fprintf(&text, "- {accessKey: %s, secretKey: %s, topicPerms: [%s, %s, %s], groupPerms: [%s]}\n", account, secSecret,
			right(secTopic, "PUB|SUB"), right(secOutput, "PUB"), right("STREAMD_FAILURES", "PUB"), right(secGroup, "SUB"))
	}
	rules := filepath.Join(t.TempDir(), "plain_acl.yml")
	if err := os.WriteFile(rules, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	port, err := cluster.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	address = fmt.Sprintf("127.0.0.1:%d", port)
	startEmbedded(t, address, address, append([]string{"--data", t.TempDir(), "--acl", rules}, more...)...)
	return address
}

// makeTopics makes the topics of these tests.
func makeTopics(t *testing.T, operator *rocketmq.Client) {
	t.Helper()
	for _, topic := range []string{secTopic, secOutput, "STREAMD_FAILURES"} {
		if err := operator.CreateTopic(t.Context(), topic, 2, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSecurity_embeddedRefusesAsTheRealOne: what TestSecurity_leastRights finds on 5.3.3 (kinds, resources, codes) is what the
// embedded broker answers, so that clients act the same.
func TestSecurity_embeddedRefusesAsTheRealOne(t *testing.T) {
	t.Parallel()
	f := &fortress{own: true, place: &place{Cluster: &cluster.Cluster{NameServers: cluster.NameServers{Addr: keep(t)}}}}
	makeTopics(t, f.client(t, "operator", secSecret))
	f.identities(t)
	f.rights(t)
}
