package admin

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Sources is what the admin listener shows.
type Sources struct {
	Metrics http.Handler // nil = no /metrics
	Status  func() any   // rendered as JSON at each request
	Version any          // rendered as JSON
	// Token is what a request that changes something must show; empty: none is carried out.
	Token string
	// Reload reads the config again and returns when it is applied, or why it is not. nil = no such request.
	Reload func(ctx context.Context) error
}

// Handler serves the admin listener. Requests whose Host is no address of this machine are refused, so that a web page
// cannot read the status through a name that resolves to the loopback.
func Handler(s Sources) http.Handler {
	mux := http.NewServeMux()
	if s.Metrics != nil {
		mux.Handle("GET /metrics", s.Metrics)
	}
	mux.HandleFunc("GET /api/v1/status", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.Status()) })
	mux.HandleFunc("GET /api/v1/version", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.Version) })
	if s.Reload != nil {
		mux.Handle("POST /api/v1/reload", guarded(s.Token, reload(s.Reload)))
	}
	profiles(mux)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		writeText(w, http.StatusOK, "streamd\n/metrics\n/api/v1/status\n/api/v1/version\n/api/v1/reload (POST, with a token)\n/debug/pprof/\n")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !plainHost(r.Host) {
			writeText(w, http.StatusForbidden, "use an IP address or localhost\n")
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// plainHost accepts addresses, localhost, and names without a dot (a service in a cluster): none can be rebound by a
// foreign name server.
func plainHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	return host == "localhost" || !strings.Contains(host, ".")
}

// Health is what probes ask.
type Health struct {
	Alive func() error           // why the process is stuck; nil = it is not
	Ready func() (reason string) // why it is not ready; "" = it is
}

// HealthHandler serves the health listener.
func HealthHandler(h Health) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		if err := h.Alive(); err != nil {
			writeText(w, http.StatusServiceUnavailable, err.Error()+"\n")
			return
		}
		writeText(w, http.StatusOK, "ok\n")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if reason := h.Ready(); reason != "" {
			writeText(w, http.StatusServiceUnavailable, reason+"\n")
			return
		}
		writeText(w, http.StatusOK, "ok\n")
	})
	return mux
}

func writeJSON(w http.ResponseWriter, v any) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		writeText(w, http.StatusInternalServerError, err.Error()+"\n")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(append(text, '\n')) // the reader has gone: there is nobody to tell
}

func writeText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text)) // as above
}
