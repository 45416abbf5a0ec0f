package httpd

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
)

const pageStyle = `:root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:44rem;margin-inline:auto;padding:1rem}` +
	`code{font-family:ui-monospace,monospace}td,th{text-align:start;padding-inline-end:1rem;vertical-align:top}`

var pageTemplate = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{if .Kind}}{{.Kind.Title}}{{else}}Problems{{end}}</title><style>` + pageStyle + `</style></head><body><main>
{{with .Kind}}<h1>{{.Title}}</h1>
<p><code>{{.Code}}</code>, status {{.Status}}, {{if .Retryable}}may succeed when repeated later{{else}}the same request will be refused again{{end}}</p>
<h2>What happened</h2><p>{{.What}}</p>
<h2>What to do</h2><p>{{.Do}}</p>
<p><a href="/problems">All problems</a></p>
{{else}}<h1>Problems</h1>
<p>Errors are answered as <a href="https://www.rfc-editor.org/rfc/rfc9457">application/problem+json</a>. Programs look at the code.</p>
<table><thead><tr><th>Code</th><th>Status</th><th>Title</th></tr></thead><tbody>
{{range .All}}<tr><td><a href="/problems/{{.Code}}"><code>{{.Code}}</code></a></td><td>{{.Status}}</td><td>{{.Title}}</td></tr>
{{end}}</tbody></table>
{{end}}</main></body></html>
`))

// kindPage is a Kind on the wire.
type kindPage struct {
	Type      string `json:"type"`
	Code      string `json:"code"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Retryable bool   `json:"retryable"`
	What      string `json:"what"`
	Do        string `json:"do"`
}

// page is one page in both forms, made once.
type page struct{ html, json []byte }

// HandleProblems serves a page for each kind of problem at /problems/{type} and their list at /problems, as HTML to browsers and
// as JSON to everyone else.
func HandleProblems(mux *http.ServeMux) {
	all := make([]kindPage, len(kinds))
	pages := make(map[string]page, len(kinds))
	for i, k := range kinds {
		all[i] = kindPage{problemsPath + k.Code, k.Code, k.Title, k.Status, k.Retryable, k.What, k.Do}
		pages[k.Code] = makePage(map[string]any{"Kind": k}, all[i])
	}
	index := makePage(map[string]any{"All": kinds}, map[string]any{"problems": all})

	mux.HandleFunc("GET /problems", func(w http.ResponseWriter, r *http.Request) { index.serve(w, r) })
	mux.HandleFunc("GET "+problemsPath+"{type}", func(w http.ResponseWriter, r *http.Request) {
		p, ok := pages[r.PathValue("type")]
		if !ok {
			WriteProblem(w, r, NotFound.Problem("There is no such kind of problem; /problems lists them."))
			return
		}
		p.serve(w, r)
	})
}

// makePage panics when the template or a kind is broken, which a test and every start would show.
func makePage(data, wire any) page {
	var html bytes.Buffer
	if err := pageTemplate.Execute(&html, data); err != nil {
		panic(err)
	}
	text, err := json.Marshal(wire)
	if err != nil {
		panic(err)
	}
	return page{html.Bytes(), append(text, '\n')}
}

// The page's own style is allowed by its hash, so that the policy needs no 'unsafe-inline'.
var pagePolicy = func() string {
	sum := sha256.Sum256([]byte(pageStyle))
	return fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		base64.StdEncoding.EncodeToString(sum[:]))
}()

func (p page) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "public, max-age=3600")
	h.Add("Vary", "Accept")
	body := p.json
	if PrefersHTML(r) {
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", pagePolicy)
		body = p.html
	} else {
		h.Set("Content-Type", "application/json")
	}
	_, _ = w.Write(body) // the client may have gone
}

// PrefersHTML says whether a request would rather have HTML than JSON (RFC 9110, 12.5.1). Browsers name text/html; who accepts
// anything gets JSON.
func PrefersHTML(r *http.Request) bool {
	html, other := 0.0, 0.0
	for _, line := range r.Header["Accept"] {
		for item := range strings.SplitSeq(line, ",") {
			media, params, _ := strings.Cut(item, ";")
			q := 1.0
			for param := range strings.SplitSeq(params, ";") {
				if name, value, _ := strings.Cut(strings.TrimSpace(param), "="); strings.EqualFold(name, "q") {
					parsed, err := strconv.ParseFloat(value, 64)
					if err != nil {
						parsed = 0
					}
					q = parsed
				}
			}
			switch strings.ToLower(strings.TrimSpace(media)) {
			case "text/html", "application/xhtml+xml":
				html = max(html, q)
			case "application/json", ProblemType:
				other = max(other, q)
			}
		}
	}
	return html > other
}
