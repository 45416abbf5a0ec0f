package api

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/holdfast-project/holdfast/internal/httpd"
	"github.com/holdfast-project/holdfast/internal/identity"
)

// SessionTTL is how long a guest stays the same customer: long enough to come back for a ticket bought well ahead.
const SessionTTL = 30 * 24 * time.Hour

// The names of the session's cookie. __Host- makes browsers insist on TLS and on this very host, so it can only be had over TLS.
const (
	cookiePlain  = "holdfast_session"
	cookieSecure = "__Host-holdfast_session"
)

// addressKey is what new sessions are counted by.
type addressKey = netip.Addr

// Session is a guest customer.
type Session struct {
	CustomerID string    `json:"customerId"`
	Token      string    `json:"token" doc:"Send it as Authorization: Bearer. Whoever has it is the customer."`
	ExpiresAt  time.Time `json:"expiresAt"`
}

type sessionOutput struct {
	SetCookie string `header:"Set-Cookie" doc:"The same token for browsers: HttpOnly, SameSite=Lax."`
	Body      Session
}

func (a *API) sessionRoutes() {
	register(a, operation{
		id: "create-session", method: http.MethodPost, path: "/v1/sessions", tag: "Sessions", status: http.StatusCreated,
		summary: "Become a customer", errors: []int{http.StatusTooManyRequests},
		description: "Makes a guest customer. Send the token as `Authorization: Bearer` with every call about holds and bookings; browsers may use the cookie " +
			"instead. The request needs no body.",
	}, a.createSession)
}

func (a *API) createSession(ctx context.Context, _ *struct{}) (*sessionOutput, error) {
	c := callOf(ctx)
	now := a.Now()
	if key, counted := httpd.ByAddress(false)(c.r); counted {
		d := a.sessions.Allow(key, now)
		a.sessions.SetHeaders(c.w.Header(), d)
		if !d.OK {
			return nil, d.Problem()
		}
	}
	c.w.Header()["Cache-Control"] = noStore
	id := identity.NewCustomerID()
	expires := now.Add(SessionTTL).UTC().Truncate(time.Second)
	token := a.Keys.Issue(identity.SessionToken, 0, id, expires)
	cookie := http.Cookie{
		Name: cookiePlain, Value: token, Path: "/", Expires: expires, MaxAge: int(SessionTTL / time.Second), HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
	if a.secure(c.r) {
		cookie.Name, cookie.Secure = cookieSecure, true
	}
	return &sessionOutput{
		SetCookie: cookie.String(),
		Body:      Session{CustomerID: id.String(), Token: token, ExpiresAt: expires},
	}, nil
}

func (a *API) secure(r *http.Request) bool {
	return r.TLS != nil || httpd.RequestOf(r.Context()).Secure || a.Secure()
}

// customer finds out who asks, by token or by cookie. A token is looked at first and alone: one that is no good must not act for somebody else.
func (a *API) customer(r *http.Request) (identity.CustomerID, error) {
	token, given := bearer(r)
	if !given {
		name := cookiePlain
		if a.secure(r) {
			name = cookieSecure
		}
		if cookie, err := r.Cookie(name); err == nil {
			token, given = cookie.Value, true
		}
	}
	if !given {
		return identity.CustomerID{}, httpd.Unauthorized.Problem("Get a session with POST /v1/sessions and send its token as Authorization: Bearer.")
	}
	id, err := a.Keys.Check(token, identity.SessionToken, 0, a.Now())
	return id, err
}

// isStaff checks the admin key.
func (a *API) isStaff(r *http.Request) error {
	if key, given := bearer(r); given && a.Admin.Matches(key) {
		return nil
	}
	return httpd.Unauthorized.Problem("Send the admin key as Authorization: Bearer.")
}

// bearer reads the Authorization field (RFC 6750). One that is there but of another kind counts as given, and is no good.
func bearer(r *http.Request) (token string, given bool) {
	fields := r.Header["Authorization"]
	if len(fields) == 0 {
		return "", false
	}
	const scheme = "bearer "
	if f := fields[0]; len(fields) == 1 && len(f) > len(scheme) && strings.EqualFold(f[:len(scheme)], scheme) {
		return strings.TrimSpace(f[len(scheme):]), true
	}
	return "", true
}
