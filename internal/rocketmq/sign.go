package rocketmq

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the protocol's own: HMAC-SHA1
	"encoding/base64"
	"maps"
	"slices"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// The header fields of a signed request (remoting-protocol.md 1.11).
const (
	fieldAccessKey = "AccessKey"
	fieldSignature = "Signature"
	// fieldUniqueQuery is signed by no version of ours: servers differ in whether they leave it out.
	fieldUniqueQuery = "_UNIQUE_KEY_QUERY"
	// unsignedQuery is the highest version in whose requests all servers leave that field out.
	unsignedQuery = 399
)

// Signer returns what signs requests as RocketMQ's access control wants it: for Config.Sign. It is safe for concurrent use.
func Signer(accessKey, secretKey string) func(*wire.Command) error {
	secret := []byte(secretKey)
	return func(cmd *wire.Command) error {
		if cmd.RequestCode() == wire.ReqQueryMessage {
			cmd.Version = min(cmd.Version, unsignedQuery)
		}
		cmd.Ext.Delete(fieldSignature)
		cmd.Ext.Set(fieldAccessKey, accessKey)
		fields := cmd.Ext.Map()
		delete(fields, fieldUniqueQuery)
		mac := hmac.New(sha1.New, secret)
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			mac.Write([]byte(fields[key])) // never fails
		}
		mac.Write(cmd.Body)
		cmd.Ext.Set(fieldSignature, base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		return nil
	}
}
