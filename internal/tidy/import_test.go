package tidy

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// may lists what each package may import of this module, tests aside. Pages and SQL both point at the engine; the engine points at nothing that does I/O.
// "*" is everything. A package that is not listed must be added here with care: that is the point.
var may = map[string][]string{
	"cmd/holdfast":                   {"*"},
	"api/client":                     {}, // people import it: the standard library only
	"internal/money":                 {},
	"internal/identity":              {},
	"internal/identity/identitytest": {"identity"},
	"internal/venue":                 {"money"},
	"internal/outbox":                {},
	"internal/outbox/outboxtest":     {"outbox"},
	"internal/payment":               {"money"},
	"internal/payment/simulator":     {"payment", "money"},
	"internal/board":                 {"identity", "money"},
	"internal/catalog":               {"identity", "money", "venue"},
	"internal/catalog/catalogtest":   {"catalog", "identity", "money", "venue"},
	"internal/booking":               {"board", "catalog", "identity", "money", "outbox", "payment", "venue"},
	"internal/booking/bookingtest":   {"board", "booking", "catalog", "identity", "money", "outbox", "payment", "payment/simulator", "ticket", "venue"},
	"internal/ticket":                {"booking", "catalog", "money", "outbox"},
	"internal/sqlite":                {"board", "booking", "catalog", "identity", "money", "outbox", "payment", "ticket", "venue"},
	"internal/httpd":                 {"booking", "catalog", "identity", "money", "payment", "payment/simulator", "ticket", "venue"}, // whose errors it maps
	"internal/api":                   {"board", "booking", "catalog", "httpd", "identity", "money", "payment", "payment/simulator", "ticket", "venue"},
	"internal/loadgen":               {"../api/client", "booking", "money"},
	"internal/tidy":                  {},
}

// technology lists the modules outside the standard library that a package may import. Concepts import no technology.
var technology = map[string][]string{
	"internal/money":             {"github.com/bojanz/currency"},
	"internal/board":             {"github.com/andybalholm/brotli", "github.com/klauspost/compress"},
	"internal/booking":           {"golang.org/x/sync"},
	"internal/ticket":            {"github.com/boombuler/barcode"},
	"internal/catalog":           {"golang.org/x/sync"},
	"internal/sqlite":            {"github.com/pressly/goose", "modernc.org/sqlite"},
	"internal/httpd":             {"github.com/prometheus/client_golang", "golang.org/x/time"},
	"internal/api":               {"github.com/danielgtaylor/huma", "github.com/andybalholm/brotli", "github.com/klauspost/compress"},
	"internal/loadgen":           {"golang.org/x/sync", "golang.org/x/time", "github.com/vbauerster/mpb"},
	"cmd/holdfast":               {"*"},
	"internal/payment":           {},
	"internal/venue":             {},
	"internal/identity":          {},
	"internal/outbox":            {},
	"internal/payment/simulator": {},
	"api/client":                 {},
}

// Concepts do no I/O: what they may not import of the standard library, and who may after all.
var banned = map[string][]string{
	"database/sql": {"internal/sqlite"},
	"os":           {"internal/payment/simulator", "internal/sqlite", "internal/tidy", "internal/loadgen"}, // files of their own, with permissions of their own
	"os/exec":      {"internal/loadgen"},
	"net":          {"internal/httpd", "internal/api", "internal/loadgen"},
	// Callbacks of providers carry signatures in headers, and the simulator sends them.
	"net/http":          {"internal/httpd", "internal/api", "internal/payment", "internal/payment/simulator", "internal/booking", "internal/loadgen", "api/client"},
	"html/template":     {"internal/httpd", "internal/api"},
	"text/template":     {},
	"log":               {}, // slog
	"C":                 {},
	"unsafe":            {},
	"plugin":            {},
	"crypto/md5":        {},
	"crypto/sha1":       {},
	"encoding/gob":      {},
	"math/rand":         {},
	"net/http/httputil": {},
	// Good for jitter and for made-up loads; ids and keys come from crypto/rand.
	"math/rand/v2": {"api/client", "internal/httpd", "internal/loadgen"},
}

// Tests and packages of tests may import anything of ours, and these.
var testModules = []string{
	"github.com/google/go-cmp", "pgregory.net/rapid", "github.com/anishathalye/porcupine", "go.uber.org/goleak", "golang.org/x/tools",
}

func importsPointOneWay(t *tree) []string {
	var out []string
	for _, s := range t.code {
		allowed, known := may[s.dir]
		if !known {
			out = append(out, fmt.Sprintf("%s: the package %s is not in tidy's table: say what it may import", s.path, s.dir))
			continue
		}
		for _, i := range s.file.Imports {
			p := strings.Trim(i.Path.Value, `"`)
			where := t.at(s, i)
			switch inner, ours := strings.CutPrefix(p, module+"/"); {
			case ours:
				name, internal := strings.CutPrefix(inner, "internal/")
				if !internal {
					name = "../" + inner
				}
				testsOnly := strings.HasSuffix(inner, "test")
				if !s.test && (testsOnly || !slices.Contains(allowed, "*") && !slices.Contains(allowed, name)) {
					out = append(out, fmt.Sprintf("%s: %s may not import %s: imports point one way (docs/architecture.md)", where, s.dir, inner))
				}
			case strings.Contains(strings.Split(p, "/")[0], "."): // a module of others
				list := technology[s.dir]
				if s.test {
					list = append(slices.Concat(list, testModules), technology[strings.TrimSuffix(s.dir, "/"+path.Base(s.dir))]...)
				}
				if !slices.Contains(list, "*") && !slices.ContainsFunc(list, func(m string) bool { return p == m || strings.HasPrefix(p, m+"/") }) {
					out = append(out, fmt.Sprintf("%s: %s may not import %s: concepts import no technology", where, s.dir, p))
				}
			default:
				who, restricted := banned[p]
				if restricted && !s.test && !strings.HasPrefix(s.dir, "cmd/") && !slices.Contains(who, s.dir) {
					out = append(out, fmt.Sprintf("%s: %s may not import %s", where, s.dir, p))
				}
			}
		}
	}
	return out
}

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	check(t, importsPointOneWay,
		trial{map[string]string{"internal/booking/x.go": goFile("booking", `import "`+module+`/internal/sqlite"`)}, 1},
		trial{map[string]string{"internal/booking/x.go": goFile("booking", `import "`+module+`/internal/booking/bookingtest"`)}, 1},
		trial{map[string]string{"internal/booking/x_test.go": goFile("booking", `import "`+module+`/internal/sqlite"`)}, 0},
		trial{map[string]string{"internal/booking/x.go": goFile("booking", `import "database/sql"`)}, 1},
		trial{map[string]string{"internal/venue/x.go": goFile("venue", `import "modernc.org/sqlite"`)}, 1},
		trial{map[string]string{"api/client/x.go": goFile("client", `import "`+module+`/internal/money"`)}, 1},
		trial{map[string]string{"internal/identity/x.go": goFile("identity", `import "math/rand/v2"`)}, 1},
		trial{map[string]string{"internal/surprise/x.go": goFile("surprise", ``)}, 1},
	)
}

// Packages say what they are about; a drawer for everything is none.
func noDrawers(t *tree) []string {
	drawers := []string{"util", "utils", "common", "helper", "helpers", "model", "models", "manager", "managers", "misc", "base", "shared", "types"}
	var out []string
	for _, s := range t.code {
		name := strings.TrimSuffix(path.Base(s.path), ".go") // model_test.go may have a model: it is a kind of test
		if slices.Contains(drawers, s.file.Name.Name) || slices.Contains(drawers, path.Base(s.dir)) || slices.Contains(drawers, name) {
			out = append(out, fmt.Sprintf("%s: name packages and files after a concept or a technology", s.path))
		}
	}
	return out
}

func TestNoDrawers(t *testing.T) {
	t.Parallel()
	check(t, noDrawers,
		trial{map[string]string{"internal/util/x.go": goFile("util", "")}, 1},
		trial{map[string]string{"internal/booking/helpers.go": goFile("booking", "")}, 1},
		trial{map[string]string{"internal/booking/hold.go": goFile("booking", "")}, 0},
	)
}

// One noun, one file name, in every layer: a store's file is named after a package, a file or a type of the concepts.
func storesMirrorConcepts(t *tree) []string {
	own := []string{"db", "batch", "chunk"} // what a store needs for itself
	stores := []string{"internal/sqlite", "internal/postgres"}
	concepts := []string{"internal/booking", "internal/catalog", "internal/venue", "internal/identity", "internal/outbox", "internal/payment", "internal/ticket", "internal/waitingroom"}
	nouns := map[string]bool{}
	files := map[string]map[string]bool{}
	for _, s := range t.code {
		name := strings.TrimSuffix(path.Base(s.path), ".go")
		switch {
		case s.test:
		case slices.Contains(concepts, s.dir):
			nouns[path.Base(s.dir)], nouns[name] = true, true
			for typeName := range declared(s) {
				nouns[strings.ToLower(typeName)] = true
			}
		case slices.Contains(stores, s.dir):
			if files[s.dir] == nil {
				files[s.dir] = map[string]bool{}
			}
			files[s.dir][name] = true
		}
	}
	for _, p := range t.list {
		if dir, file := path.Split(p); path.Base(dir) == "migrations" && path.Ext(file) == ".sql" {
			if store := path.Dir(path.Clean(dir)); files[store] != nil {
				files[store]["migrations/"+file] = true
			}
		}
	}
	var out []string
	for _, store := range slices.Sorted(maps.Keys(files)) {
		for name := range files[store] {
			if !nouns[name] && !slices.Contains(own, name) && !strings.HasPrefix(name, "migrations/") {
				out = append(out, fmt.Sprintf("%s/%s.go: no concept has a file or type of this name", store, name))
			}
			for _, other := range stores {
				if files[other] != nil && !files[other][name] {
					out = append(out, fmt.Sprintf("%s/%s: %s has no file of the same name", store, name, other))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestStoresMirrorConcepts(t *testing.T) {
	t.Parallel()
	concept := goFile("booking", "type Pool struct{}")
	check(t, storesMirrorConcepts,
		trial{map[string]string{"internal/booking/hold.go": concept, "internal/sqlite/hold.go": goFile("sqlite", ""), "internal/sqlite/pool.go": goFile("sqlite", "")}, 0},
		trial{map[string]string{"internal/booking/hold.go": concept, "internal/sqlite/reservation.go": goFile("sqlite", "")}, 1},
		trial{map[string]string{
			"internal/booking/hold.go": concept, "internal/sqlite/hold.go": goFile("sqlite", ""), "internal/sqlite/pool.go": goFile("sqlite", ""),
			"internal/postgres/hold.go": goFile("postgres", ""), "internal/postgres/migrations/0001_x.sql": "",
		}, 2},
	)
}

var numbered = regexp.MustCompile(`^(\d{4})[_-].+\.(sql|md)$`)

// Migrations and decisions count from 1 without gaps: nothing was lost in a merge, and no number has two meanings.
func numbersHaveNoGaps(t *tree) []string {
	series := map[string][]string{}
	for _, p := range t.list {
		dir, file := path.Split(p)
		if base := path.Base(dir); base == "migrations" || base == "adr" {
			series[dir] = append(series[dir], file)
		}
	}
	var out []string
	for _, dir := range slices.Sorted(maps.Keys(series)) {
		for i, file := range series[dir] { // sorted, as the list is
			m := numbered.FindStringSubmatch(file)
			if want := fmt.Sprintf("%04d", i+1); m == nil || m[1] != want {
				out = append(out, fmt.Sprintf("%s%s: %s is next", dir, file, want))
				break
			}
		}
	}
	return out
}

func TestNumbersHaveNoGaps(t *testing.T) {
	t.Parallel()
	check(t, numbersHaveNoGaps,
		trial{map[string]string{"internal/sqlite/migrations/0001_a.sql": "", "internal/sqlite/migrations/0003_b.sql": ""}, 1},
		trial{map[string]string{"docs/adr/0001-a.md": "", "docs/adr/0001-b.md": ""}, 1},
		trial{map[string]string{"docs/adr/0001-a.md": "", "docs/adr/0002-b.md": ""}, 0},
	)
}
