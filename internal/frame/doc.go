// Package frame holds the columnar batch that crosses the process border, and the events that come back.
//
// It is a leaf: the engine fills a Batch, the plugin host and the SDK carry it, and none of them needs the other.
// The layout mirrors the Records message of sdk/pluginv1, so a batch is written to the border without visiting its records.
package frame
