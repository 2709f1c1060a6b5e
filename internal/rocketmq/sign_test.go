package rocketmq

import (
	"bufio"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// TestSigner signs what Java and Go clients signed, and must come to their signatures.
func TestSigner(t *testing.T) {
	t.Parallel()
	f, err := os.Open(filepath.Join("wire", "testdata", "vectors", "acl.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	sign := Signer("rocketmq", "12345678")
	lines, checked := bufio.NewScanner(z), 0
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		var r struct {
			Frame string `json:"frame_hex"`
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		frame, err := hex.DecodeString(r.Frame)
		if err != nil {
			t.Fatal(err)
		}
		cmd := new(wire.Command)
		if err := cmd.Decode(frame[wire.PrefixSize:]); err != nil {
			t.Fatal(err)
		}
		want := cmd.Ext.Get("Signature")
		if want == "" || cmd.RequestCode() == wire.ReqQueryMessage {
			continue
		}
		checked++
		cmd.Ext.Delete("AccessKey")
		if err := sign(cmd); err != nil || cmd.Ext.Get("Signature") != want || cmd.Ext.Get("AccessKey") != "rocketmq" {
			t.Errorf("%s: %s, %v, want %s", cmd.RequestCode(), cmd.Ext.Get("Signature"), err, want)
		}
	}
	if err := lines.Err(); err != nil || checked < 40 {
		t.Errorf("checked %d, %v", checked, err)
	}
}

// TestSigner_query leaves the flag of a query unsigned, in a version in which all servers do.
func TestSigner_query(t *testing.T) {
	t.Parallel()
	sign := Signer("k", "s")
	with := &wire.Command{Code: int32(wire.ReqQueryMessage), Version: 409, Ext: wire.Fields{{Key: "topic", Value: "T"}, {Key: "_UNIQUE_KEY_QUERY", Value: "true"}}}
	without := &wire.Command{Code: int32(wire.ReqQueryMessage), Version: 300, Ext: wire.Fields{{Key: "topic", Value: "T"}}}
	for _, cmd := range []*wire.Command{with, without} {
		if err := sign(cmd); err != nil {
			t.Fatal(err)
		}
	}
	if with.Version != 399 || without.Version != 300 || with.Ext.Get("Signature") != without.Ext.Get("Signature") || with.Ext.Get("_UNIQUE_KEY_QUERY") != "true" {
		t.Errorf("with %+v\nwithout %+v", with, without)
	}
}
