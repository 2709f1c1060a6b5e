package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// guarded lets a request through that shows the token, as "Authorization: Bearer TOKEN". A browser sends that header to no
// foreign page's wish, so no web page can change anything here either.
func guarded(token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case token == "":
			writeText(w, http.StatusForbidden, "requests that change something need a token, and the config has none: set admin.token\n")
		case !bearer:
			w.Header().Set("WWW-Authenticate", "Bearer")
			writeText(w, http.StatusUnauthorized, "send the header \"Authorization: Bearer TOKEN\" with the token of admin.token\n")
		case !same(shown, token):
			writeText(w, http.StatusForbidden, "this is not the token of admin.token\n")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// same compares in a time that tells nothing of where the texts differ, or of how long the token is.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

func reload(do func(ctx context.Context) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := do(r.Context()); err != nil {
			writeText(w, http.StatusConflict, err.Error()+"\n")
			return
		}
		writeText(w, http.StatusOK, "the config is in force\n")
	})
}
