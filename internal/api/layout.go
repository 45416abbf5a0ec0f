package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/danielgtaylor/huma/v2"
	"github.com/klauspost/compress/gzip"

	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/httpd"
	"github.com/holdfast-project/holdfast/internal/venue"
)

// maxLayoutFiles is how many layouts are kept compressed; of 50,000 seats each is some 200 kB.
const maxLayoutFiles = 256

// layoutFile is a layout for the wire. It is compressed once and for good, so it is worth the effort.
type layoutFile struct {
	once                sync.Once
	tag                 string // without the coding
	plain, gzip, brotli []byte
}

type layoutFiles struct {
	mu  sync.Mutex
	all map[catalog.LayoutRef]*layoutFile
}

func (f *layoutFiles) of(ref catalog.LayoutRef, l *venue.Layout) *layoutFile {
	f.mu.Lock()
	got := f.all[ref]
	if got == nil {
		if f.all == nil || len(f.all) >= maxLayoutFiles {
			f.all = map[catalog.LayoutRef]*layoutFile{}
		}
		got = &layoutFile{}
		f.all[ref] = got
	}
	f.mu.Unlock()
	got.once.Do(func() { got.make(l) })
	return got
}

func (f *layoutFile) make(l *venue.Layout) {
	f.plain = l.Wire()
	sum := sha256.Sum256(f.plain)
	f.tag = base64.RawURLEncoding.EncodeToString(sum[:12])
	var z, b bytes.Buffer
	// Writing to a Buffer cannot fail, and the level is one of the library's.
	zw, _ := gzip.NewWriterLevel(&z, gzip.BestCompression)
	_, _ = zw.Write(f.plain)
	_ = zw.Close()
	const brotliLevel = 9 // 11 takes a second for a stadium and saves 3 %
	bw := brotli.NewWriterLevel(&b, brotliLevel)
	_, _ = bw.Write(f.plain)
	_ = bw.Close()
	f.gzip, f.brotli = z.Bytes(), b.Bytes()
}

// LayoutRef names a version of a layout.
type LayoutRef struct {
	LayoutID string `json:"layoutId"`
	Version  int    `json:"version"`
	URL      string `json:"url" doc:"Never changes: keep it for ever."`
}

func layoutRef(ref catalog.LayoutRef) *LayoutRef {
	if ref == (catalog.LayoutRef{}) {
		return nil
	}
	return &LayoutRef{LayoutID: ref.ID, Version: ref.Version, URL: fmt.Sprintf("/v1/layouts/%s/%d", ref.ID, ref.Version)}
}

func (a *API) layoutRoutes() {
	const tag = "Events"
	ref := a.huma.OpenAPI().Components.Schemas.Schema(typeOf[LayoutRef](), true, "")
	a.plain(operation{
		id: "get-event-layout", method: http.MethodGet, path: "/v1/events/{event}/layout", tag: tag, errors: []int{http.StatusNotFound},
		summary: "The fixed part of an event's seat map", description: "Leads to the version of the layout that the event has. An event of pools only has none.",
	}, "", []*huma.Param{pathParam("event", "Id or slug.")},
		map[string]*huma.Response{"302": {
			Description: "The layout is at Location.", Headers: map[string]*huma.Header{"Location": {Schema: &huma.Schema{Type: huma.TypeString}}},
			Content: map[string]*huma.MediaType{jsonType: {Schema: ref}},
		}}, a.eventLayout)
	a.plain(operation{
		id: "get-layout", method: http.MethodGet, path: "/v1/layouts/{layout}/{version}", tag: tag, errors: []int{http.StatusNotFound},
		summary: "A version of a layout", description: "Sections, rows, seats and geometry in a compact form. It never changes. Comes compressed by br or gzip where the client takes that.",
	}, "", []*huma.Param{pathParam("layout", ""), pathParam("version", "")},
		map[string]*huma.Response{
			"200": {Description: "The layout.", Content: map[string]*huma.MediaType{jsonType: {Schema: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}}}},
			"304": {Description: "Not modified."},
		}, a.layout)
}

func (a *API) eventLayout(w http.ResponseWriter, r *http.Request) error {
	e, err := a.event(r.Context(), r.PathValue("event"))
	if err != nil {
		return err
	}
	ref := layoutRef(e.Layout)
	if ref == nil {
		return httpd.NotFound.Problem("This event has no seats, only pools.")
	}
	body, err := json.Marshal(ref)
	if err != nil {
		return err
	}
	h := w.Header()
	h["Cache-Control"] = maxAge1
	h["Content-Type"] = jsonField
	h["Location"] = []string{ref.URL}
	w.WriteHeader(http.StatusFound)
	_, _ = w.Write(body) // the client may have gone
	return nil
}

var forEver = []string{"public, max-age=31536000, immutable"}

func (a *API) layout(w http.ResponseWriter, r *http.Request) error {
	noLayout := httpd.NotFound.Problem("There is no such version of a layout.")
	text := r.PathValue("version")
	version, err := strconv.Atoi(text)
	id := r.PathValue("layout")
	if err != nil || version < 1 || strconv.Itoa(version) != text || len(id) > maxID {
		return noLayout
	}
	ref := catalog.LayoutRef{ID: id, Version: version}
	l, err := a.Catalog.Layout(r.Context(), ref)
	if errors.Is(err, catalog.ErrNotFound) {
		return noLayout
	}
	if err != nil {
		return err
	}
	f := a.layouts.of(ref, l)
	c, body, tag := accepted(r), f.plain, `"`+f.tag+`"`
	switch c { // a strong tag is of the bytes, so each coding has its own
	case zipped:
		body, tag = f.gzip, `"`+f.tag+`-gz"`
	case brotlied:
		body, tag = f.brotli, `"`+f.tag+`-br"`
	case asIs:
	}
	h := w.Header()
	h["Cache-Control"] = forEver
	h["Vary"] = varyEncoding
	h["Etag"] = []string{tag}
	if sameTag(r, tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	writeFile(w, c, body)
	return nil
}
