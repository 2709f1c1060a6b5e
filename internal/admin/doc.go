// Package admin is streamd's HTTP: /metrics and /api/v1 on the admin listener, /livez and /readyz on the health listener.
//
// Promises: reading changes nothing; a request that changes something needs the token of the config, whatever address it comes
// from, and without a token in the config there is none that does; livez ignores brokers, plugins and drain; readyz is true once every stream was
// assigned and its handler ready, and false again only while streamd stops. The handlers are safe for concurrent use and
// start no goroutines. Profiles (/debug/pprof/) are given to the loopback only.
package admin
