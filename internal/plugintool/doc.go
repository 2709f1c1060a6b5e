// Package plugintool runs one plugin binary without a daemon or a broker: what "streamd plugin describe", "plugin try"
// and "plugin check" do. The binary goes through the same host as in production: handshake, mutual TLS, lanes, credits.
//
// Promises: nothing is left running; what a plugin logs while it handles a message is shown with that message; a plugin
// that hangs is cut off at the deadline and reported, not waited for.
//
// Goroutines: the plugin host's; all have ended when a function returns.
package plugintool
