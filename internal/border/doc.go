// Package border holds what both ends of the process border must agree on beside the contract itself: the handshake, the
// environment of a plugin, the gRPC codec and the tuning of the connection. The plugin host and the SDK import it.
//
// Lanes carry frames that internal/frame writes and reads by hand; everything else is standard protobuf. All of it is
// valid pluginv1 on the wire, so a plugin in another language uses stock stubs (docs/decisions/0002-border-codec.md).
package border
