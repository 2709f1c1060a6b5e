package allocate

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// Identity names what computes: two members with equal identities compute the same.
type Identity struct {
	Strategy string // config name of a built-in one, or plugin/component
	Version  string // BuiltinVersion, or version and checksum of the plugin
	Config   string // HashConfig of the config as delivered
}

// String is the identity on one line, fit for comparison and display.
func (i Identity) String() string { return i.Strategy + "@" + i.Version + "#" + i.Config }

// HashConfig hashes a strategy's config as JSON text; "-" for none.
func HashConfig(config []byte) string {
	if len(config) == 0 {
		return "-"
	}
	return shortHash(sha256.Sum256(config))
}

// Digest says what a member computed for one topic. It travels in the properties of the member's running info (307).
type Digest struct {
	Identity
	Input   string // HashInput
	Result  string // HashResult; empty when there was no answer, or only the own share was computed
	Invalid Rule   // empty when the answer was applied
}

// digestText is a Digest as it travels.
type digestText struct {
	Strategy string `json:"strategy"`
	Version  string `json:"version,omitempty"`
	Config   string `json:"config,omitempty"`
	Input    string `json:"input"`
	Result   string `json:"result,omitempty"`
	Invalid  Rule   `json:"invalid,omitempty"`
}

// String is the digest as it travels: a JSON object.
func (d Digest) String() string {
	text, err := json.Marshal(digestText{d.Strategy, d.Version, d.Config, d.Input, d.Result, d.Invalid})
	if err != nil {
		panic(fmt.Sprintf("strings cannot be written as JSON: %v", err)) // cannot happen: strings always can
	}
	return string(text)
}

// ParseDigest reads what Digest.String wrote. Unknown keys are left out: a later version may say more.
func ParseDigest(text string) (Digest, error) {
	var d digestText
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return Digest{}, fmt.Errorf("reading a digest: %w", err)
	}
	if d.Strategy == "" || d.Input == "" {
		return Digest{}, fmt.Errorf("reading a digest: %q has no strategy or no input", text)
	}
	return Digest{
		Identity: Identity{Strategy: d.Strategy, Version: d.Version, Config: d.Config}, Input: d.Input, Result: d.Result, Invalid: d.Invalid,
	}, nil
}

// HashInput hashes what all members see alike: everything but Self.
func HashInput(in Input) string {
	h := newHasher()
	h.text(in.Group)
	h.text(in.Topic)
	h.number(len(in.Queues))
	for _, q := range in.Queues {
		h.text(q.Topic)
		h.text(q.Broker)
		h.number(int(q.ID))
	}
	h.number(len(in.Members))
	for _, m := range in.Members {
		h.text(m.ClientID) // attributes are part of the id
	}
	h.number(len(in.Previous))
	for _, p := range in.Previous {
		h.number(int(p))
	}
	return h.short()
}

// HashResult hashes an answer that maps every queue. It is empty for an answer with NotComputed in it: such answers
// differ from member to member.
func HashResult(owner []int32) string {
	if len(owner) == 0 || slices.Contains(owner, NotComputed) {
		return ""
	}
	h := newHasher()
	for _, o := range owner {
		h.number(int(o))
	}
	return h.short()
}

// hasher hashes a sequence of fields with their borders.
type hasher struct{ buf []byte }

func newHasher() *hasher { return &hasher{} }

func (h *hasher) text(s string) {
	h.number(len(s))
	h.buf = append(h.buf, s...)
}

func (h *hasher) number(n int) { h.buf = binary.AppendVarint(h.buf, int64(n)) }

func (h *hasher) short() string { return shortHash(sha256.Sum256(h.buf)) }

// shortHash keeps 64 bits: enough to compare what a group computes, short enough for a property.
func shortHash(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:8]) }
