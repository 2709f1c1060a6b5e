package broker_test

import (
	"bufio"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// recorded is a frame that passed between a real client and a real 5.3.3 server (vectors/README.md 2).
type recorded struct {
	Step, Dir, Server, Client string
	Seq, Conn                 int
	Code                      int32
	IsResponse                bool `json:"is_response"`
	IsOneway                  bool `json:"is_oneway"`
	RequestSeq                int  `json:"request_seq"`
	Decoded                   struct {
		Remark *string
		Ext    map[string]string `json:"extFields"`
	}
	Frame string `json:"frame_hex"`
}

func recording(t *testing.T, flow string) (requests []recorded, answers map[int]recorded) {
	t.Helper()
	answers = make(map[int]recorded)
	for _, r := range frames(t, flow) {
		switch {
		case r.Server != "5.3.3":
		case r.IsResponse:
			answers[r.RequestSeq] = r
		case strings.HasPrefix(r.Dir, "client→"):
			requests = append(requests, r)
		}
	}
	return requests, answers
}

// frames is everything of a flow's file.
func frames(t *testing.T, flow string) (all []recorded) {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "rocketmq", "wire", "testdata", "vectors", flow+".jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		var r recorded
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// replay sends the recorded requests of a flow in order and compares the answers' shape: code, which fields they have, the
// remark where it is RocketMQ's own text and not an exception's.
func replay(t *testing.T, b *broker.Broker, flow string, skip func(recorded) bool) (compared int) {
	t.Helper()
	requests, answers := recording(t, flow)
	var d net.Dialer
	nc, err := d.DialContext(t.Context(), "tcp", b.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	in := bufio.NewReader(nc)
	for _, r := range requests {
		want, answered := answers[r.Seq]
		if !answered || skip(r) {
			continue
		}
		frame, err := hex.DecodeString(r.Frame)
		if err != nil {
			t.Fatal(err)
		}
		var sent wire.Command
		if err := sent.Decode(frame[4:]); err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Write(frame); err != nil {
			t.Fatal(err)
		}
		compare(t, r.Seq, readAnswer(t, in, sent.Opaque), want)
		compared++
	}
	return compared
}

func readAnswer(t *testing.T, in *bufio.Reader, opaque int32) *wire.Command {
	t.Helper()
	for {
		frame, err := readFrame(in)
		if err != nil {
			t.Fatal(err)
		}
		got := new(wire.Command)
		if err := got.Decode(frame[4:]); err != nil {
			t.Fatal(err)
		}
		if got.IsResponse() && got.Opaque == opaque {
			return got
		}
	}
}

func compare(t *testing.T, seq int, got *wire.Command, want recorded) {
	t.Helper()
	if got.Code != want.Code {
		t.Errorf("[%d] code %d %q, recorded %d", seq, got.Code, got.Remark, want.Code)
	}
	if (got.Ext == nil) != (want.Decoded.Ext == nil) {
		t.Errorf("[%d] extFields absent: %t, recorded %t", seq, got.Ext == nil, want.Decoded.Ext == nil)
	}
	gotKeys, wantKeys := slices.Sorted(maps.Keys(got.Ext.Map())), slices.Sorted(maps.Keys(want.Decoded.Ext))
	if !slices.Equal(gotKeys, wantKeys) {
		t.Errorf("[%d] fields %v, recorded %v", seq, gotKeys, wantKeys)
	}
	remark := ""
	if want.Decoded.Remark != nil {
		remark = *want.Decoded.Remark
	}
	exception := strings.Contains(remark, "Exception")
	address := strings.Contains(remark, "127.0.0.1:") // The client's port differs.
	if !exception && !address && got.Remark != remark {
		t.Errorf("[%d] remark %q, recorded %q", seq, got.Remark, remark)
	}
}

func TestReplay_errors(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	b.CreateTopic("TopicTest", 4)
	if err := b.Put(broker.Message{Topic: "TopicTest", Body: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	if n := replay(t, b, "errors", func(recorded) bool { return false }); n < 35 {
		t.Errorf("%d answers compared", n)
	}
}

// TestReplay_wholeFlows replays what does not depend on messages that were stored before: all of it must fit.
func TestReplay_wholeFlows(t *testing.T) {
	t.Parallel()
	for flow, least := range map[string]int{"membership": 11, "heartbeat": 20, "route": 16, "binary-header": 20} {
		t.Run(flow, func(t *testing.T) {
			t.Parallel()
			b := startBroker(t, broker.Config{})
			for _, topic := range []string{"TopicTest", "TopicMember"} {
				b.CreateTopic(topic, 4)
			}
			n := replay(t, b, flow, func(r recorded) bool {
				switch wire.RequestCode(r.Code) {
				case wire.ReqPullMessage, wire.ReqSendBack, wire.ReqQueryConsumerOffset:
					return true
				default:
					return false
				}
			})
			if n < least {
				t.Errorf("%d answers compared, want at least %d", n, least)
			}
		})
	}
}

func TestReplay_sendsAndOffsets(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	for topic, queues := range map[string]int32{"TopicTest": 4, "TopicQ": 1, "TopicOff": 1, "TopicDelay": 4, "TopicReadOnly": 4, "TopicBig": 4, "TopicLite": 4} {
		b.CreateTopic(topic, queues)
	}
	for flow, least := range map[string]int{"produce": 15, "query": 1, "compress": 4} {
		n := replay(t, b, flow, func(r recorded) bool {
			switch wire.RequestCode(r.Code) {
			case wire.ReqSendMessage, wire.ReqSendMessageV2, wire.ReqSendBatchMessage, wire.ReqHeartbeat, wire.ReqUnregisterClient,
				wire.ReqCheckClientConfig, wire.ReqGetMaxOffset, wire.ReqGetMinOffset:
				return false
			default:
				return true // Depends on what was stored before.
			}
		})
		if n < least {
			t.Errorf("%s: %d answers compared", flow, n)
		}
	}
}
