package wire

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
	b, err := hex.DecodeString(s)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// The recordings are read once; no test changes them.
var (
	loadFrames   = sync.OnceValues(readFrames)
	loadMessages = sync.OnceValues(readMessages)
)

// recordedFrames returns every recorded frame; there are 2221 of them.
func recordedFrames(tb testing.TB) []recordedFrame {
	tb.Helper()
	all, err := loadFrames()
	if err != nil || len(all) != 2221 {
		tb.Fatalf("%d recorded frames, want 2221; %v", len(all), err)
	}
	return all
}

// recordedMessages returns every recorded stored message; there are 122.
func recordedMessages(tb testing.TB) []recordedMessage {
	tb.Helper()
	all, err := loadMessages()
	if err != nil || len(all) != 122 {
		tb.Fatalf("%d recorded messages, want 122; %v", len(all), err)
	}
	return all
}

func readFrames() ([]recordedFrame, error) {
	return readVectors[recordedFrame](func(name string) bool { return !strings.HasPrefix(name, "messages-") })
}

func readMessages() ([]recordedMessage, error) {
	return readVectors[recordedMessage](func(name string) bool { return strings.HasPrefix(name, "messages-") })
}

// readVectors parses each line of the vector files that are wanted.
func readVectors[T any](wanted func(name string) bool) ([]T, error) {
	files, err := filepath.Glob(filepath.Join("testdata", "vectors", "*.jsonl.gz"))
	if err != nil {
		return nil, err
	}
	var all []T
	for _, name := range files {
		if !wanted(filepath.Base(name)) {
			continue
		}
		packed, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, err
		}
		dec := json.NewDecoder(z)
		for dec.More() {
			var v T
			if err := dec.Decode(&v); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			all = append(all, v)
		}
	}
	return all, nil
}
