package admin_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/admin"
)

func get(t *testing.T, h http.Handler, host, method, path string) (code int, body string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	r.Host = host
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	text, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(text)
}

func TestAdmin(t *testing.T) {
	h := admin.Handler(admin.Sources{
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "streamd_up 1\n") }),
		Status:  func() any { return map[string]string{"state": "running"} },
		Version: map[string]string{"version": "v1"},
	})
	for _, c := range []struct {
		host, method, path string
		code               int
		body               string
	}{
		{"127.0.0.1:8420", "GET", "/metrics", 200, "streamd_up 1"},
		{"localhost:8420", "GET", "/api/v1/status", 200, `"state": "running"`},
		{"[::1]:8420", "GET", "/api/v1/version", 200, `"version": "v1"`},
		{"streamd:8420", "GET", "/", 200, "/metrics"},
		{"127.0.0.1", "GET", "/nothing", 404, ""},
		{"127.0.0.1", "POST", "/api/v1/status", 405, ""},
		{"rebound.example.com", "GET", "/api/v1/status", 403, "localhost"},
	} {
		code, body := get(t, h, c.host, c.method, c.path)
		if code != c.code || !strings.Contains(body, c.body) {
			t.Errorf("%s %s at %s = %d %q, want %d %q", c.method, c.path, c.host, code, body, c.code, c.body)
		}
	}
}

func TestAdmin_profilesForThisMachineOnly(t *testing.T) {
	h := admin.Handler(admin.Sources{Status: func() any { return nil }})
	for remote, code := range map[string]int{"127.0.0.1:5": 200, "[::1]:5": 200, "10.1.2.3:5": 403, "nobody": 403} {
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/debug/pprof/symbol"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			r.Host, r.RemoteAddr = "localhost:8420", remote
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != code {
				t.Errorf("%s from %s = %d, want %d", path, remote, w.Code, code)
			}
		}
	}
}

func TestHealth(t *testing.T) {
	var stuck error
	reason := "stream orders waits for plugin acme"
	h := admin.HealthHandler(admin.Health{Alive: func() error { return stuck }, Ready: func() string { return reason }})
	if code, body := get(t, h, "10.1.2.3", "GET", "/readyz"); code != 503 || !strings.Contains(body, "acme") {
		t.Errorf("readyz = %d %q", code, body)
	}
	if code, _ := get(t, h, "10.1.2.3", "GET", "/livez"); code != 200 {
		t.Errorf("livez = %d while not ready", code)
	}
	reason, stuck = "", errors.New("the main loop is stuck")
	if code, _ := get(t, h, "x.example.com", "GET", "/readyz"); code != 200 {
		t.Errorf("readyz = %d", code)
	}
	if code, body := get(t, h, "10.1.2.3", "GET", "/livez"); code != 503 || !strings.Contains(body, "stuck") {
		t.Errorf("livez = %d %q", code, body)
	}
}
