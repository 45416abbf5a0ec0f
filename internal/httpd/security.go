package httpd

import (
	"fmt"
	"net/http"
)

// Fields of every answer; a handler that needs another one sets its own over it. The policy is for data: pages that load
// something must say what.
var (
	noSniff     = []string{"nosniff"}
	referrer    = []string{"strict-origin-when-cross-origin"}
	policy      = []string{"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}
	permissions = []string{"camera=(), geolocation=(), microphone=(), payment=(), usb=()"}
	transport   = []string{"max-age=31536000"} // a year; subdomains may belong to others
)

// SecurityHeaders sets the fields that keep browsers from guessing, framing and leaking. Strict-Transport-Security is sent over
// TLS only: a browser that once saw it refuses plain HTTP for a year.
func SecurityHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["X-Content-Type-Options"] = noSniff
		h["Referrer-Policy"] = referrer
		h["Content-Security-Policy"] = policy
		h["Permissions-Policy"] = permissions
		if r.TLS != nil || RequestOf(r.Context()).Secure {
			h["Strict-Transport-Security"] = transport
		}
		next.ServeHTTP(w, r)
	})
}

// SameOrigin refuses unsafe requests that a browser sends from another site's page, by Sec-Fetch-Site and Origin
// (http.CrossOriginProtection). A request that carries a token and no cookie is let through: no browser adds a token by itself.
// One with neither is checked too, for it could be a sign-in under somebody else's name. origins may send nevertheless, each
// scheme://host[:port]; a malformed one is an error.
func SameOrigin(origins []string) (Middleware, error) {
	protection := http.NewCrossOriginProtection()
	for _, origin := range origins {
		if err := protection.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("trusted origin: %w", err)
		}
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			byToken := len(r.Header["Authorization"]) > 0 && len(r.Header["Cookie"]) == 0
			if !byToken && protection.Check(r) != nil {
				WriteProblem(w, r, Forbidden.Problem("The request comes from a page of another site."))
				return
			}
			next.ServeHTTP(w, r)
		})
	}, nil
}
