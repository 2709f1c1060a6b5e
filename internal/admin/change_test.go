package admin_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/admin"
)

// TestChange: who may change something, and what the others are told.
func TestChange(t *testing.T) {
	const token = "a-token-of-the-operator"
	for name, c := range map[string]struct {
		token, method, header string
		outcome               error
		code                  int
		says                  string
		done                  bool
	}{
		"right":             {token, http.MethodPost, "Bearer " + token, nil, 200, "in force", true},
		"refused config":    {token, http.MethodPost, "Bearer " + token, errors.New("streamd.yaml:3:5: unknown key"), 409, "streamd.yaml:3:5", true},
		"none shown":        {token, http.MethodPost, "", nil, 401, "Authorization: Bearer", false},
		"wrong":             {token, http.MethodPost, "Bearer " + token + "x", nil, 403, "admin.token", false},
		"part of it":        {token, http.MethodPost, "Bearer " + token[:5], nil, 403, "admin.token", false},
		"another scheme":    {token, http.MethodPost, "Basic " + token, nil, 401, "Bearer", false},
		"empty":             {token, http.MethodPost, "Bearer ", nil, 403, "admin.token", false},
		"none in config":    {"", http.MethodPost, "Bearer ", nil, 403, "set admin.token", false},
		"read":              {token, http.MethodGet, "Bearer " + token, nil, 405, "", false},
		"none, nothing set": {"", http.MethodPost, "", nil, 403, "set admin.token", false},
	} {
		t.Run(name, func(t *testing.T) {
			done := false
			h := admin.Handler(admin.Sources{
				Status: func() any { return nil }, Token: c.token, Reload: func(context.Context) error { done = true; return c.outcome },
			})
			r := httptest.NewRequestWithContext(t.Context(), c.method, "/api/v1/reload", nil)
			r.Host = "127.0.0.1:8420"
			if c.header != "" {
				r.Header.Set("Authorization", c.header)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) || done != c.done {
				t.Errorf("%d %q, done %t, want %d %q, %t", w.Code, w.Body, done, c.code, c.says, c.done)
			}
			if strings.Contains(w.Body.String(), token) {
				t.Error("the answer has the token")
			}
		})
	}
}

// TestNothingElseChanges: every other path takes reads alone, so that a new verb has to be put behind the token on purpose.
func TestNothingElseChanges(t *testing.T) {
	h := admin.Handler(admin.Sources{
		Metrics: http.NotFoundHandler(), Status: func() any { return nil }, Reload: func(context.Context) error { t.Error("reloaded"); return nil },
	})
	for _, path := range []string{"/", "/metrics", "/api/v1/status", "/api/v1/version", "/api/v1/reload", "/debug/pprof/", "/debug/pprof/profile"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			code, _ := get(t, h, "127.0.0.1:8420", method, path)
			if code < 400 || code >= 500 {
				t.Errorf("%s %s = %d", method, path, code)
			}
		}
	}
	health := admin.HealthHandler(admin.Health{Alive: func() error { return nil }, Ready: func() string { return "" }})
	for _, path := range []string{"/metrics", "/api/v1/status", "/api/v1/reload", "/debug/pprof/"} {
		if code, _ := get(t, health, "10.1.2.3", "GET", path); code != http.StatusNotFound {
			t.Errorf("the health listener serves %s: %d", path, code)
		}
	}
}
