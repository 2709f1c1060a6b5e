//go:build !unix

package serve

import "os"

//nolint:gochecknoglobals // the same name as on unix, where it is needed
var handshakeOut = os.Stdout
