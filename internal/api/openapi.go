package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// ProblemBody documents problems: httpd.Problem writes them.
type ProblemBody struct {
	Type      string         `json:"type" doc:"Address of the page that explains the kind." example:"/problems/places-gone"`
	Title     string         `json:"title"`
	Status    int            `json:"status"`
	Code      string         `json:"code" doc:"Stable; what programs look at." example:"places-gone"`
	Detail    string         `json:"detail,omitempty" doc:"This occurrence, and what to do about it."`
	Instance  string         `json:"instance,omitempty"`
	Retryable bool           `json:"retryable" doc:"The same request may succeed later."`
	Errors    []ProblemField `json:"errors,omitempty"`

	Seats        []string   `json:"seats,omitempty" doc:"Of places-gone, seats-taken and orphan-seat: which seats."`
	Pools        []string   `json:"pools,omitempty" doc:"Of places-gone: pools that have not enough left."`
	Alternatives [][]string `json:"alternatives,omitempty" doc:"Of places-gone: blocks of seats that were free a moment ago."`
	OpensAt      *time.Time `json:"opensAt,omitempty" doc:"Of not-on-sale."`
	MaxBytes     int64      `json:"maxBytes,omitempty" doc:"Of body-too-large."`
}

// ProblemField names one field of the request that is wrong.
type ProblemField struct {
	Pointer string `json:"pointer" doc:"JSON pointer into the body, or the name of a parameter." example:"#/seats/0"`
	Detail  string `json:"detail"`
	Code    string `json:"code,omitempty"`
}

func info(version string) *huma.Info {
	if version == "" {
		version = "dev"
	}
	return &huma.Info{
		Title: "Holdfast", Version: version, License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		Description: "Sells scarce places to a crowd: cinema and concert seats, standing room, airline seats.\n\n" +
			"The way of a buyer: become a customer, find an event, look at its seats, hold places, check out, pay at the address that the checkout gives, " +
			"read the booking and its tickets.\n\n" +
			"Times are RFC 3339 in UTC. Money is integer minor units with an ISO 4217 code. Ids are opaque. Somebody else's hold, booking or ticket is a 404.\n\n" +
			"Errors are application/problem+json (RFC 9457) with a stable code; /problems has a page for each. " +
			"Limits are told in RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-11), and Retry-After says when to try again. " +
			"Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-08) makes a request safe to repeat: the same key with the same body is answered as the first time, " +
			"with another body it is refused.",
	}
}

var tags = []*huma.Tag{
	{Name: "Sessions", Description: "Who one is."},
	{Name: "Events", Description: "What is on sale. Public, and cacheable for a second."},
	{Name: "Holds", Description: "Places taken for minutes."},
	{Name: "Bookings", Description: "From the checkout on."},
	{Name: "Tickets", Description: "What a gate reads."},
	{Name: "Payments", Description: "For payment providers."},
	{Name: "Simulator", Description: "A pretended payment provider, for trying things out."},
	{Name: "Staff", Description: "With the admin key."},
}

var securitySchemes = map[string]*huma.SecurityScheme{
	"session": {Type: "http", Scheme: "bearer", Description: "The token of POST /v1/sessions."},
	"cookie":  {Type: "apiKey", In: "cookie", Name: cookiePlain, Description: "The same token, for browsers; over TLS the name begins with __Host-."},
	"link":    {Type: "apiKey", In: "query", Name: "link", Description: "The token in a booking's link: reads that booking only."},
	"admin":   {Type: "http", Scheme: "bearer", Description: "The admin key."},
}

// documentRoutes makes the document and its page when all routes are there.
func (a *API) documentRoutes() error {
	doc := a.huma.OpenAPI()
	for path, item := range doc.Paths {
		if op := item.Get; op != nil && path == "/v1/events/{event}" {
			op.Responses["304"] = &huma.Response{Description: "Not modified since If-None-Match."}
		}
		for _, method := range methods {
			if op := operationOf(item, method); op != nil {
				limited(op)
			}
		}
	}
	openAnswers(doc)
	text, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("OpenAPI document: %w", err)
	}
	yaml, err := doc.YAML()
	if err != nil {
		return fmt.Errorf("OpenAPI document: %w", err)
	}
	page, err := docsPage(doc)
	if err != nil {
		return fmt.Errorf("page of the OpenAPI document: %w", err)
	}
	a.static("/openapi.json", "application/json", "", text)
	a.static("/openapi.yaml", "application/yaml", "", yaml)
	a.static("/docs", "text/html; charset=utf-8", stylePolicy(docsStyle, "'none'"), page)
	return nil
}

// openAnswers lets schemas that are only answered have more fields than are known today, so that adding one breaks no strict client. What is sent to us
// stays closed: a misspelt field must not be overlooked.
func openAnswers(doc *huma.OpenAPI) {
	sent := map[string]bool{}
	var visit func(s *huma.Schema)
	visit = func(s *huma.Schema) {
		if s == nil {
			return
		}
		if name := refName(s); name != "" && !sent[name] {
			sent[name] = true
			visit(doc.Components.Schemas.SchemaFromRef(s.Ref))
		}
		visit(s.Items)
		for _, p := range s.Properties {
			visit(p)
		}
		if values, ok := s.AdditionalProperties.(*huma.Schema); ok {
			visit(values)
		}
	}
	for _, item := range doc.Paths {
		for _, method := range methods {
			if op := operationOf(item, method); op != nil && op.RequestBody != nil {
				for _, media := range op.RequestBody.Content {
					visit(media.Schema)
				}
			}
		}
	}
	for name, s := range doc.Components.Schemas.Map() {
		if !sent[name] && s.AdditionalProperties == false {
			s.AdditionalProperties = nil
		}
	}
}

// required are fields whose absence has a problem of its own, so that huma must not look for them.
var required = map[string]string{"checkout": "Idempotency-Key", "edit-event": "If-Match"}

// limited documents the fields of an answer that says slow down, and those of the request that must be there.
func limited(op *huma.Operation) {
	text := func(what string) *huma.Header {
		return &huma.Header{Description: what, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	for _, p := range op.Parameters {
		p.Required = p.Required || p.Name == required[op.OperationID]
	}
	if r := op.Responses["429"]; r != nil {
		r.Headers = map[string]*huma.Header{
			"Retry-After": text("Seconds."), "RateLimit": text("Which limit, what is left of it, and when it is full again."), "RateLimit-Policy": text("Its size and window."),
		}
	}
	if r := op.Responses["503"]; r != nil {
		r.Headers = map[string]*huma.Header{"Retry-After": text("Seconds.")}
	}
}

// static serves bytes that were made at the start.
func (a *API) static(path, media, policy string, body []byte) {
	a.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", media)
		h.Set("Cache-Control", "public, max-age=60")
		if policy != "" {
			h.Set("Content-Security-Policy", policy)
		}
		_, _ = w.Write(body) // the client may have gone
	})
}
