package wire

import (
	"bufio"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recordedFrame is one line of testdata/vectors: a frame as it passed between a real client and a real server.
type recordedFrame struct {
	Flow        string `json:"flow"`
	Step        string `json:"step"`
	Seq         int    `json:"seq"`
	Client      string `json:"client"`
	Dir         string `json:"dir"`
	Code        int32  `json:"code"`
	Name        string `json:"name"`
	IsResponse  bool   `json:"is_response"`
	IsOneway    bool   `json:"is_oneway"`
	RequestCode int32  `json:"request_code"`
	Opaque      int32  `json:"opaque"`
	Encoding    string `json:"header_encoding"`
	Decoded     struct {
		Language   string            `json:"language"`
		Version    int32             `json:"version"`
		Flag       int32             `json:"flag"`
		Remark     *string           `json:"remark"`
		ExtFields  map[string]string `json:"extFields"`
		Duplicates []string          `json:"duplicate_ext_keys"`
		Body       json.RawMessage   `json:"body"`
		Messages   []recordedShort   `json:"body_messages"`
		Batch      []recordedPart    `json:"body_batch"`
		Text       *string           `json:"body_text"`
		Hex        *string           `json:"body_hex"`
	} `json:"decoded"`
	Frame string `json:"frame_hex"`
}

type recordedShort struct {
	Topic          string `json:"topic"`
	QueueID        int32  `json:"queueId"`
	QueueOffset    int64  `json:"queueOffset"`
	LogOffset      int64  `json:"commitLogOffset"`
	SysFlag        int32  `json:"sysFlag"`
	ReconsumeTimes int32  `json:"reconsumeTimes"`
}

type recordedPart struct {
	TotalSize  int               `json:"totalSize"`
	Flag       int32             `json:"flag"`
	Body       string            `json:"body_hex"`
	Properties map[string]string `json:"properties"`
}

// recordedMessage is one stored message of messages-N.jsonl.
type recordedMessage struct {
	recordedShort
	Kind          []string          `json:"kind"`
	FrameSeq      int               `json:"frame_seq"`
	Flag          int32             `json:"flag"`
	BornMillis    int64             `json:"bornTimestamp"`
	BornHost      string            `json:"bornHost"`
	StoreMillis   int64             `json:"storeTimestamp"`
	StoreHost     string            `json:"storeHost"`
	Prepared      int64             `json:"preparedTransactionOffset"`
	BodyCRC       uint32            `json:"bodyCRC"`
	TotalSize     int               `json:"totalSize"`
	Magic         string            `json:"magic"`
	Properties    map[string]string `json:"properties"`
	Pairs         [][2]string       `json:"properties_pairs"`
	PropertiesHex string            `json:"properties_hex"`
	ID            string            `json:"msgId"`
	OffsetID      string            `json:"offsetMsgId"`
	BodyHex       string            `json:"body_hex"`
	Hex           string            `json:"hex"`
}

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// eachVector calls visit with each line of the vector files that match pattern.
func eachVector(tb testing.TB, pattern string, visit func(file string, line []byte)) {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "vectors", pattern))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no vectors match %s: %v", pattern, err)
	}
	for _, name := range files {
		readVectors(tb, name, visit)
	}
}

func readVectors(tb testing.TB, name string, visit func(file string, line []byte)) {
	tb.Helper()
	f, err := os.Open(name)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		visit(strings.TrimSuffix(filepath.Base(name), ".jsonl.gz"), lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
}

// recordedFrames returns every recorded frame; there are 2221 of them.
func recordedFrames(tb testing.TB) []recordedFrame {
	tb.Helper()
	var all []recordedFrame
	eachVector(tb, "*.jsonl.gz", func(file string, line []byte) {
		if strings.HasPrefix(file, "messages-") {
			return
		}
		var f recordedFrame
		if err := json.Unmarshal(line, &f); err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		all = append(all, f)
	})
	if len(all) != 2221 {
		tb.Fatalf("%d recorded frames, want 2221", len(all))
	}
	return all
}

// recordedMessages returns every recorded stored message; there are 122.
func recordedMessages(tb testing.TB) []recordedMessage {
	tb.Helper()
	var all []recordedMessage
	eachVector(tb, "messages-*.jsonl.gz", func(file string, line []byte) {
		var m recordedMessage
		if err := json.Unmarshal(line, &m); err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		all = append(all, m)
	})
	if len(all) != 122 {
		tb.Fatalf("%d recorded messages, want 122", len(all))
	}
	return all
}
