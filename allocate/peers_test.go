package allocate_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/allocate/allocatetest"
)

func TestCheckPeers(t *testing.T) {
	java := func(strategy string) allocate.Peer {
		return allocate.Peer{ClientID: "j", Kind: allocate.PeerJava, Strategy: strategy}
	}
	goClient := allocate.Peer{ClientID: "g", Kind: allocate.PeerGo, Strategy: allocate.NameAveragely}
	streamd, unknown := allocate.Peer{ClientID: "s", Kind: allocate.PeerStreamd}, allocate.Peer{ClientID: "u"}
	for _, c := range []struct {
		name, strategy string
		peers          []allocate.Peer
		ok             bool
		use            string
	}{
		{"streamd only", "acme/nearest", []allocate.Peer{streamd}, true, ""},
		{"same as Java", allocate.NameAveragely, []allocate.Peer{streamd, java(allocate.NameAveragely)}, true, ""},
		{"sticky with Java", allocate.NameSticky, []allocate.Peer{java(allocate.NameConsistentHash)}, false, allocate.NameConsistentHash},
		{"another of Java's", allocate.NameAveragelyByCircle, []allocate.Peer{java(allocate.NameAveragely)}, false, allocate.NameAveragely},
		{"Java with a class of its own", allocate.NameAveragely, []allocate.Peer{java("")}, false, ""},
		{"Java members that disagree", allocate.NameSticky, []allocate.Peer{java(allocate.NameAveragely), java(allocate.NameConfig)}, false, ""},
		{"Go", allocate.NameAveragely, []allocate.Peer{goClient}, true, ""},
		{"Go has another ring", allocate.NameConsistentHash, []allocate.Peer{goClient}, false, allocate.NameAveragely},
		{"unknown, Java-exact", allocate.NameConsistentHash, []allocate.Peer{unknown}, true, ""},
		{"unknown, not exact", allocate.NameSticky, []allocate.Peer{unknown}, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := allocate.CheckPeers(c.strategy, c.peers)
			if c.ok {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			mixed, ok := errors.AsType[*allocate.MixedGroupError](err)
			if !ok || mixed.Use != c.use || !strings.Contains(err.Error(), c.strategy) {
				t.Fatalf("%v, want a MixedGroupError with use %q", err, c.use)
			}
		})
	}
}

func TestPeerOf(t *testing.T) {
	digest := allocate.Digest{Identity: allocate.Identity{Strategy: "acme/ä b", Version: "1&2", Config: "-"}, Input: "i=", Invalid: allocate.RuleCrash}
	for name, c := range map[string]struct {
		properties map[string]string
		kind       allocate.PeerKind
		strategy   string
	}{
		"silent": {nil, allocate.PeerUnknown, ""},
		"java": {map[string]string{
			"PROP_CLIENT_VERSION":          "V5_3_3",
			"allocateMessageQueueStrategy": "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash@48bef49",
		}, allocate.PeerJava, allocate.NameConsistentHash},
		"java, nearby": {map[string]string{"allocateMessageQueueStrategy": "x.AllocateMachineRoomNearby@1"}, allocate.PeerJava, allocate.NameMachineRoomNearby},
		"java, own":    {map[string]string{"allocateMessageQueueStrategy": "com.acme.Mine$$Lambda$1/0x7@1"}, allocate.PeerJava, ""},
		"go":           {map[string]string{"PROP_CONSUME_TYPE": "CONSUME_PASSIVELY"}, allocate.PeerGo, allocate.NameAveragely},
		"streamd":      {map[string]string{allocate.PropertyStreamd: "0.1", allocate.PropertyDigestPrefix + "T": digest.String()}, allocate.PeerStreamd, ""},
	} {
		p, err := allocate.PeerOf("id", c.properties)
		if err != nil || p.Kind != c.kind || p.Strategy != c.strategy {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		if name == "streamd" && p.Digests["T"] != digest {
			t.Errorf("digest came back as %+v", p.Digests["T"])
		}
	}
	p, err := allocate.PeerOf("id", map[string]string{allocate.PropertyStreamd: "0.1", allocate.PropertyDigestPrefix + "T": "%zz"})
	if err == nil || p.Kind != allocate.PeerStreamd || len(p.Digests) != 0 {
		t.Errorf("a garbled digest was read: %+v, %v", p, err)
	}
}

func TestDisagree(t *testing.T) {
	own := allocate.Digest{Identity: allocate.Identity{Strategy: "s", Version: "1"}, Input: "i", Result: "r"}
	with := func(id string, d allocate.Digest) allocate.Peer {
		return allocate.Peer{ClientID: id, Kind: allocate.PeerStreamd, Digests: map[string]allocate.Digest{"T": d}}
	}
	other, version, later := own, own, own
	other.Result, version.Version, later.Input, later.Result = "x", "2", "j", "y"
	peers := []allocate.Peer{with("d", version), with("c", other), with("b", later), with("a", own), {ClientID: "e"}}
	if got := allocate.Disagree(own, "T", peers); !slices.Equal(got, []string{"c", "d"}) {
		t.Errorf("%v disagree, want c and d", got)
	}
}

func TestMemberIDs(t *testing.T) {
	for id, want := range map[string]map[string]string{
		"10.0.0.7@4711#99@zone=a,weight=2": {"zone": "a", "weight": "2"},
		"10.0.0.7@4711#99":                 nil, // Java since 4.9
		"10.0.0.7@DEFAULT@unit@STREAM":     nil,
		"10.0.0.7@DEFAULT@zone=a@STREAM":   {"zone": "a"},
		"10.0.0.7@a=b,c":                   nil,
		"10.0.0.7@a=":                      nil,
		"zone=a":                           nil,
		"":                                 nil,
		"@@@":                              nil,
	} {
		if got := allocate.ParseMember(id); !maps.Equal(got.Attributes, want) || got.ClientID != id {
			t.Errorf("%q: %v, want %v", id, got, want)
		}
	}
	for _, c := range []struct {
		base       string
		attributes map[string]string
	}{
		{"no-at", map[string]string{"a": "b"}},
		{"ip@1", map[string]string{"a": "b@c"}},
		{"ip@1", map[string]string{"a": ""}},
		{"ip@1", map[string]string{"a,b": "c"}},
		{"ip@1@zone=x", map[string]string{"a": "b"}},
	} {
		if id, err := allocate.MemberID(c.base, c.attributes); err == nil {
			t.Errorf("%q with %v became %q, want an error", c.base, c.attributes, id)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[A-Za-z0-9._-]{1,8}`)
		attributes := rapid.MapOf(text, text).Draw(t, "attributes")
		id, err := allocate.MemberID("10.0.0.7@4711#99", attributes)
		if err != nil {
			t.Fatal(err)
		}
		if got := allocate.ParseMember(id); !maps.Equal(got.Attributes, attributes) {
			t.Fatalf("%q reads as %v, want %v", id, got.Attributes, attributes)
		}
	})
}

// What a Decision says can be asked again: the question survives its way through a file.
func TestQuestionRoundTrip(t *testing.T) {
	in := allocatetest.Input(t, queues(t, "a:0-3 b:1"), []string{"c2@1@zone=a", "c1@1"})
	back, err := allocate.QuestionOf(in).Input()
	if err != nil {
		t.Fatal(err)
	}
	if allocate.HashInput(back) != allocate.HashInput(in) || back.Self != in.Self || back.Members[1].Attributes["zone"] != "a" {
		t.Errorf("%+v became %+v", in, back)
	}
	for _, bad := range []string{"b", "b/x", "/1"} {
		q := allocate.QuestionOf(in)
		q.Queues = []string{bad}
		if _, err := q.Input(); err == nil {
			t.Errorf("queue %q was read", bad)
		}
	}
	big := allocatetest.Input(t, allocatetest.Queues("T", "b", 20_000), []string{"c1"})
	if text := allocate.Reproduce(allocate.Identity{Strategy: "s"}, big); len(text) > 1000 {
		t.Errorf("the command has %d bytes", len(text))
	}
}
