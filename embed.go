// Package streamd holds the files of the SDK, so that the streamd binary can unpack them beside a new plugin until the SDK
// is published. internal/scaffold is its only user.
package streamd

import "embed"

// SDK is what a plugin outside this repository needs to build: the SDK, and the two leaves it stands on.
//
//go:embed go.mod go.sum LICENSE sdk internal/frame internal/border
var SDK embed.FS
