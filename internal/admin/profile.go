package admin

import (
	"net"
	"net/http"
	"net/http/pprof" //nolint:gosec // served by this handler alone, to this machine alone; nothing serves the default mux
)

// profiles serves /debug/pprof/ of the process, so that a running streamd can tell what it spends its time on. A profile
// shows names of functions and their costs, and costs CPU itself: it is for this machine only, whatever address the
// listener has.
func profiles(mux *http.ServeMux) {
	for path, h := range map[string]http.HandlerFunc{
		"GET /debug/pprof/": pprof.Index, "GET /debug/pprof/profile": pprof.Profile, "GET /debug/pprof/trace": pprof.Trace, "GET /debug/pprof/symbol": pprof.Symbol,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if !fromHere(r) {
				writeText(w, http.StatusForbidden, "profiles are given to the loopback only\n")
				return
			}
			h(w, r)
		})
	}
}

// fromHere tells whether a request came over the loopback.
func fromHere(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return err == nil && net.ParseIP(host).IsLoopback()
}
