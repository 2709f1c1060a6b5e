package offsetfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/streamd/streamd/sdk"
)

// format is the version of the file's form. A reader refuses a higher one.
const format = 1

// content is the first line of a file; the second is its checksum.
type content struct {
	Format int       `json:"format"`
	Member string    `json:"member"`
	Broker string    `json:"broker"`
	Group  string    `json:"group"`
	Saved  time.Time `json:"saved"`
	Queues []entry   `json:"queues"`
}

// entry is one queue. Without an offset it was there when its topic was first seen, and its start is not chosen yet.
type entry struct {
	Topic  string `json:"topic"`
	Broker string `json:"broker"`
	ID     int32  `json:"queue"`
	Offset *int64 `json:"offset,omitempty"`
}

// unset stands for the offset of a queue whose start is not chosen yet.
const unset int64 = -1

var (
	errChecksum = errors.New("its checksum is wrong")
	errEmpty    = errors.New("it is empty")
)

// newerError is a file of a streamd that came later. Its backup is no help: it is older, not other.
type newerError struct{ format int }

func (e *newerError) Error() string {
	return fmt.Sprintf("it has format %d, and this streamd reads up to %d", e.format, format)
}

// otherError is a sound file of somebody else.
type otherError struct{ member, broker, group string }

func (e *otherError) Error() string {
	return fmt.Sprintf("it belongs to member %q, broker %q, group %q", e.member, e.broker, e.group)
}

// encode writes the file's text.
func encode(o *Options, offsets map[sdk.Queue]int64, now time.Time) ([]byte, error) {
	c := content{Format: format, Member: o.Member, Broker: o.Broker, Group: o.Group, Saved: now.UTC(), Queues: make([]entry, 0, len(offsets))}
	for _, q := range slices.SortedFunc(maps.Keys(offsets), sdk.Queue.Compare) {
		e := entry{Topic: q.Topic, Broker: q.Broker, ID: q.ID}
		if at := offsets[q]; at != unset {
			e.Offset = &at
		}
		c.Queues = append(c.Queues, e)
	}
	line, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encoding the offsets: %w", err)
	}
	return fmt.Appendf(line, "\n%s\n", checksum(line)), nil
}

func checksum(line []byte) string {
	return fmt.Sprintf("crc32c %08x", crc32.Checksum(line, crc32.MakeTable(crc32.Castagnoli)))
}

// decode reads a file's text, and says what is wrong with it.
func decode(o *Options, text []byte) (map[sdk.Queue]int64, error) {
	if len(bytes.Trim(text, "\x00")) == 0 {
		return nil, errEmpty
	}
	line, rest, _ := bytes.Cut(text, []byte("\n"))
	if strings.TrimSpace(string(rest)) != checksum(line) {
		return nil, errChecksum
	}
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(line, &version); err != nil {
		return nil, fmt.Errorf("reading its format: %w", err)
	}
	if version.Format > format {
		return nil, &newerError{version.Format}
	}
	var c content
	in := json.NewDecoder(bytes.NewReader(line))
	in.DisallowUnknownFields()
	if err := in.Decode(&c); err != nil {
		return nil, fmt.Errorf("reading its offsets: %w", err)
	}
	if c.Member != o.Member || c.Broker != o.Broker || c.Group != o.Group {
		return nil, &otherError{c.Member, c.Broker, c.Group}
	}
	offsets := make(map[sdk.Queue]int64, len(c.Queues))
	for _, e := range c.Queues {
		q, at := sdk.Queue{Topic: e.Topic, Broker: e.Broker, ID: e.ID}, unset
		if e.Offset != nil {
			if at = *e.Offset; at < 0 {
				return nil, fmt.Errorf("it has offset %d for %s", at, q)
			}
		}
		offsets[q] = at
	}
	return offsets, nil
}
