package acl

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the protocol's own: HMAC-SHA1
	"encoding/base64"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// The header fields of a signed request.
const (
	fieldAccessKey = "AccessKey"
	fieldSignature = "Signature"
	// fieldUniqueQuery is left out of what is signed in requests up to version lastUnsignedQuery.
	fieldUniqueQuery        = "_UNIQUE_KEY_QUERY"
	lastUnsignedQuery int32 = 399
)

// account is one access key with what it may do.
type account struct {
	name         string
	secret       []byte
	white        addresses
	admin        bool
	defaultTopic permission
	defaultGroup permission
	topics       map[string]permission
	groups       map[string]permission
}

// List is who may do what. The zero value refuses everything.
type List struct {
	white    addresses
	accounts map[string]*account
}

// Accounts is how many access keys there are.
func (l *List) Accounts() int { return len(l.accounts) }

// RefusedError is why a request is refused: the remark of the answer, whose code is 16.
type RefusedError struct{ Remark string }

// Error is the remark.
func (r *RefusedError) Error() string { return r.Remark }

func refuse(format string, args ...any) *RefusedError {
	return &RefusedError{fmt.Sprintf(format, args...)}
}

// Check looks at a request that came from an address. Nil: it is allowed.
func (l *List) Check(from netip.Addr, cmd *wire.Command) *RefusedError {
	code := cmd.RequestCode()
	if open(code) || l.white.match(from) {
		return nil
	}
	key := cmd.Ext.Get(fieldAccessKey)
	if key == "" {
		return refuse("username cannot be null.")
	}
	a := l.accounts[key]
	if a == nil {
		return refuse("User:%s is not found.", key)
	}
	if a.white.match(from) {
		return nil
	}
	if !a.signed(cmd) {
		return refuse("check signature failed.")
	}
	if a.admin {
		return nil
	}
	needs, known := needsOf(cmd)
	if !known {
		return a.refused("Cluster", "*", from, false)
	}
	for _, n := range needs {
		if r := a.check(n, from); r != nil {
			return r
		}
	}
	return nil
}

func (a *account) check(n need, from netip.Addr) *RefusedError {
	kind, have, fallback := "Topic", a.topics, a.defaultTopic
	if n.group {
		kind, have, fallback = "Group", a.groups, a.defaultGroup
	}
	owned, written := have[n.name]
	if !written {
		owned = fallback
	}
	if owned&n.perm != 0 {
		return nil
	}
	return a.refused(kind, n.name, from, written && owned == deny)
}

func (a *account) refused(kind, name string, from netip.Addr, denied bool) *RefusedError {
	why := "no matched policies."
	if denied {
		why = "the decision is deny."
	}
	return refuse("User:%s has no permission to access %s:%s from %s, %s", a.name, kind, name, from, why)
}

func (a *account) signed(cmd *wire.Command) bool {
	given, err := base64.StdEncoding.DecodeString(cmd.Ext.Get(fieldSignature))
	if err != nil {
		return false
	}
	return hmac.Equal(given, sum(a.secret, cmd))
}

// sum is the signature of a request: HMAC-SHA1 over the values of its fields in the order of their keys, and the body.
func sum(secret []byte, cmd *wire.Command) []byte {
	fields := cmd.Ext.Map() // of a field that is there twice the last one counts
	keys := make([]string, 0, len(fields))
	for k := range fields {
		if k == fieldSignature || k == fieldUniqueQuery && cmd.Version <= lastUnsignedQuery {
			continue
		}
		keys = append(keys, k)
	}
	slices.SortFunc(keys, strings.Compare)
	mac := hmac.New(sha1.New, secret)
	for _, k := range keys {
		mac.Write([]byte(fields[k])) // never fails
	}
	mac.Write(cmd.Body)
	return mac.Sum(nil)
}
