package acl_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/broker/acl"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func TestBadFiles(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"empty":      {"", []string{"f.yml:1:1: the file is empty"}},
		"no YAML":    {"a: [", []string{"f.yml: yaml: line 1"}},
		"not a map":  {"- a", []string{"f.yml:1:1: the file must be a mapping"}},
		"keys":       {"acounts: []\nglobalWhiteRemoteAddresses: x\n", []string{`f.yml:1:1: unknown key "acounts"`, "f.yml:2:29: globalWhiteRemoteAddresses must be a list"}},
		"account":    {"accounts:\n  - accessKey: short\n    secretKey: hunter2x\n  - {accessKey: longenough}\n", []string{"f.yml:2:16: accessKey must be a text of 7", "f.yml:4:5: an account needs accessKey and secretKey"}},
		"twice":      {"accounts:\n  - {accessKey: longenough, secretKey: hunter2x}\n  - {accessKey: longenough, secretKey: hunter2y}\n", []string{`f.yml:3:5: the access key "longenough" is there twice`}},
		"permission": {"accounts:\n  - accessKey: longenough\n    secretKey: hunter2x\n    admin: maybe\n    defaultTopicPerm: PUB,SUB\n    topicPerms: [Orders, Other=READ]\n", []string{"f.yml:4:12: admin is true or false", `f.yml:5:23: "PUB,SUB" is no permission; try PUB, SUB, PUB|SUB or DENY`, `f.yml:6:18: "Orders" is no NAME=PUB`, `f.yml:6:26: "READ" is no permission`}},
		"address":    {"globalWhiteRemoteAddresses: [10.0.0, 10.0.0.256, 9-3.1.1.1, '1.1.1.{2', host]\n", []string{"f.yml:1:30:", "f.yml:1:38:", "f.yml:1:50:", "f.yml:1:61:", "f.yml:1:73:"}},
	} {
		_, err := acl.Parse("f.yml", []byte(c.text))
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error lacks %q:\n%v", name, want, err)
			}
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: a secret is told:\n%v", name, err)
		}
	}
	if _, err := acl.Read(filepath.Join(t.TempDir(), "missing.yml")); err == nil {
		t.Error("a file that is not there was read")
	}
	path := filepath.Join(t.TempDir(), "plain_acl.yml")
	if err := os.WriteFile(path, []byte(rules+"dataVersion: [{counter: 1}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := acl.Read(path); err != nil || l.Accounts() != 3 {
		t.Errorf("Read = %+v, %v", l, err)
	}
}

func TestWhiteAddresses(t *testing.T) {
	for rule, c := range map[string]struct{ in, out string }{
		"10.1.2.3":              {"10.1.2.3", "10.1.2.4"},
		"*":                     {"2001:db8::1", ""},
		"*.*.*.*":               {"10.1.2.3", "2001:db8::1"},
		"10.1.2.*":              {"10.1.2.255", "10.1.3.0"},
		"10.1-3.*.*":            {"10.3.9.9", "10.4.9.9"},
		"10.1.2.{3,5}":          {"10.1.2.5", "10.1.2.4"},
		"10.1.2.3,10.1.2.{7,8}": {"10.1.2.8", "10.1.2.4"},
		"10.1.2.3, 2001:db8::1": {"2001:db8::1", "2001:db8::2"},
		"10.0.0.0/8":            {"10.255.1.1", "11.0.0.1"},
		"2001:db8::/32":         {"2001:db8:1::1", "2001:db9::1"},
		"::ffff:10.1.2.3":       {"10.1.2.3", "10.1.2.4"},
		"192.168.{0-1,9}.{1,2}": {"192.168.1.2", "192.168.2.2"},
	} {
		list := parse(t, "globalWhiteRemoteAddresses: ['"+rule+"']")
		cmd := &wire.Command{Code: int32(wire.ReqHeartbeat)}
		if refused := list.Check(netip.MustParseAddr(c.in), cmd); refused != nil {
			t.Errorf("%s keeps %s out: %v", rule, c.in, refused)
		}
		if c.out != "" && list.Check(netip.MustParseAddr(c.out), cmd) == nil {
			t.Errorf("%s lets %s in", rule, c.out)
		}
	}
	if (&acl.List{}).Check(loopback, &wire.Command{Code: int32(wire.ReqHeartbeat)}) == nil {
		t.Error("a list without anything lets somebody in")
	}
}
