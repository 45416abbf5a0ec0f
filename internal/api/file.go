package api

import (
	"net/http"
	"strconv"
	"strings"
)

// coding is a Content-Encoding.
type coding int

const (
	asIs     coding = iota
	zipped          // gzip
	brotlied        // br
)

var (
	jsonField    = []string{jsonType}
	gzipField    = []string{"gzip"}
	brotliField  = []string{"br"}
	varyEncoding = []string{"Accept-Encoding"}
)

// accepted chooses the best coding that the client takes (RFC 9110, 12.5.3): br, gzip, else none.
func accepted(r *http.Request) coding {
	best := asIs
	for _, line := range r.Header["Accept-Encoding"] {
		for item := range strings.SplitSeq(line, ",") {
			name, params, _ := strings.Cut(item, ";")
			if _, q, weighted := strings.Cut(params, "="); weighted {
				if weight, err := strconv.ParseFloat(strings.TrimSpace(q), 64); err != nil || weight <= 0 {
					continue
				}
			}
			switch strings.TrimSpace(name) {
			case "br":
				return brotlied
			case "gzip":
				best = zipped
			}
		}
	}
	return best
}

// sameTag says whether an If-None-Match field names the tag, by the weak comparison (RFC 9110, 13.1.2).
func sameTag(r *http.Request, tag string) bool {
	tag = strings.TrimPrefix(tag, "W/")
	for _, line := range r.Header["If-None-Match"] {
		for item := range strings.SplitSeq(line, ",") {
			if item = strings.TrimSpace(item); item == "*" || strings.TrimPrefix(item, "W/") == tag {
				return true
			}
		}
	}
	return false
}

// writeFile answers with bytes of JSON that are ready, in the coding that the fields then name.
func writeFile(w http.ResponseWriter, c coding, body []byte) {
	h := w.Header()
	h["Content-Type"] = jsonField
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	switch c {
	case zipped:
		h["Content-Encoding"] = gzipField
	case brotlied:
		h["Content-Encoding"] = brotliField
	case asIs:
	}
	_, _ = w.Write(body) // the client may have gone
}
