package tidy

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Links between documents lead somewhere.
func linksResolve(t *tree) []string {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	var out []string
	for _, p := range t.markdown() {
		for _, to := range words(link, withoutCode(t.text[p])) {
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(to, "#")
			target := p
			if file != "" {
				target = path.Join(path.Dir(p), file)
			}
			_, isFile := t.text[target]
			isDir := slices.ContainsFunc(t.list, func(f string) bool { return strings.HasPrefix(f, target+"/") })
			switch {
			case !isFile && !isDir:
				out = append(out, fmt.Sprintf("%s: the link to %s leads nowhere", p, to))
			case anchor != "" && !slices.Contains(anchors(t.text[target]), anchor):
				out = append(out, fmt.Sprintf("%s: %s has no heading #%s", p, target, anchor))
			}
		}
	}
	return out
}

var fence = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```[ \t]*$")

func withoutCode(text string) string { return fence.ReplaceAllString(text, "") }

// anchors are the headings as the usual renderers name them.
func anchors(text string) []string {
	heading := regexp.MustCompile(`(?m)^#+ +(.+)$`)
	drop := regexp.MustCompile(`[^\p{L}\p{N}\-_ ]`)
	var out []string
	for _, h := range words(heading, withoutCode(text)) {
		out = append(out, strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(strings.TrimSpace(h)), ""), " ", "-"))
	}
	return out
}

func TestLinksResolve(t *testing.T) {
	t.Parallel()
	check(t, linksResolve,
		trial{map[string]string{"README.md": "[a](docs/gone.md)"}, 1},
		trial{map[string]string{"README.md": "[a](docs/a.md#two-words) [b](docs/a.md#other) [c](docs)", "docs/a.md": "## Two `words`\n"}, 1},
	)
}

// Commands that documents show exist: targets of the Makefile and commands of the program.
func commandsExist(t *tree) []string {
	targets := words(regexp.MustCompile(`(?m)^([a-z][a-z-]*):`), t.text["Makefile"])
	commands := []string{"help"}
	subcommand := regexp.MustCompile(`Use:\s*"([a-z-]+)`)
	for _, s := range t.code {
		if strings.HasPrefix(s.dir, "cmd/") && !s.test {
			commands = append(commands, words(subcommand, t.text[s.path])...)
		}
	}
	shown := regexp.MustCompile("(?m)(?:^|[`$] ?|\\s)make ([a-z][a-z-]*)(?:[` ;]|$)")
	run := regexp.MustCompile(`(?:go run \./cmd/holdfast|\bholdfast) ([a-z][a-z-]*)\b`)
	var out []string
	for _, p := range append(t.markdown(), ".ci/run") {
		code := codeOf(t.text[p])
		if p == ".ci/run" {
			code = regexp.MustCompile(`(?m)^step `).ReplaceAllString(t.text[p], "make ")
		}
		for _, name := range words(shown, code) {
			if !slices.Contains(targets, name) {
				out = append(out, fmt.Sprintf("%s: the Makefile has no target %s", p, name))
			}
		}
		for _, name := range words(run, code) {
			if !slices.Contains(commands, name) {
				out = append(out, fmt.Sprintf("%s: the program has no command %s", p, name))
			}
		}
	}
	return out
}

// codeOf is what stands in fences and backticks, the latter a line each.
func codeOf(text string) string {
	spans := regexp.MustCompile("`[^`\n]+`").FindAllString(withoutCode(text), -1)
	return strings.Join(append(fence.FindAllString(text, -1), spans...), "\n")
}

func TestCommandsExist(t *testing.T) {
	t.Parallel()
	command := goFile("main", `var c = struct{ Use string }{Use: "serve"}`)
	check(t, commandsExist,
		trial{map[string]string{"README.md": "`make bake` and `make test`", "Makefile": "test: ## x\n\ttrue\n"}, 1},
		trial{map[string]string{"README.md": "```sh\ngo run ./cmd/holdfast dance\nholdfast serve --listen :1\n```\n", "cmd/holdfast/x.go": command}, 1},
		trial{map[string]string{".ci/run": "step deps\nstep tests\n", "Makefile": "deps:\n"}, 1},
	)
}

// Paths of the API that documents show exist.
func routesExist(t *tree) []string {
	declared := regexp.MustCompile("[\"` ](/v1/[^\"`\\s?]*)[\"`]")
	shown := regexp.MustCompile(`(?:^|[\s"'/}:0-9A-Za-z])(/v1/[A-Za-z0-9_{}$/.<>…-]+)`)
	var routes [][]string
	for _, s := range t.code {
		if s.dir == "internal/api" && !s.test {
			for _, r := range words(declared, t.text[s.path]) {
				routes = append(routes, strings.Split(r, "/"))
			}
		}
	}
	fits := func(route, asked []string) bool {
		if len(route) != len(asked) {
			return false
		}
		for i, part := range route {
			if !strings.HasPrefix(part, "{") && part != asked[i] {
				return false
			}
		}
		return true
	}
	var out []string
	for _, p := range []string{"README.md", "docs/operating.md", "docs/architecture.md"} {
		for _, asked := range words(shown, t.text[p]) {
			asked = strings.TrimRight(asked, ".")
			if strings.Contains(asked, "…") || strings.HasSuffix(asked, "/") {
				continue // only the beginning of a path
			}
			if !slices.ContainsFunc(routes, func(r []string) bool { return fits(r, strings.Split(asked, "/")) }) {
				out = append(out, fmt.Sprintf("%s: the API has no %s", p, asked))
			}
		}
	}
	return out
}

func TestRoutesExist(t *testing.T) {
	t.Parallel()
	routes := goFile("api", `var r = []string{"/v1/events/{event}/holds", "GET /v1/events"}`)
	check(t, routesExist,
		trial{map[string]string{"README.md": "curl $H/v1/events/demo/holds; curl $H/v1/events/demo/orders; curl '$H/v1/events?q=x'", "internal/api/x.go": routes}, 1},
	)
}

// Every setting is documented, and every documented setting exists.
func settingsAreDocumented(t *tree) []string {
	name := regexp.MustCompile(`\b(HOLDFAST_[A-Z0-9_]*[A-Z0-9])\b`)
	is := map[string]string{}
	for _, s := range t.code {
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				if n.Tag == nil || !strings.HasPrefix(s.dir, "cmd/") {
					break
				}
				tag, err := strconv.Unquote(n.Tag.Value)
				if err != nil {
					break
				}
				if v, _, _ := strings.Cut(reflect.StructTag(tag).Get("env"), ","); v != "" && v != "-" {
					is["HOLDFAST_"+v] = t.at(s, n)
				}
			case *ast.BasicLit:
				if n.Kind == token.STRING && s.test && s.dir != "internal/tidy" {
					for _, v := range words(name, n.Value) {
						is[v] = t.at(s, n)
					}
				}
			}
			return true
		})
	}
	for _, v := range words(name, t.text["Makefile"]) {
		is[v] = "Makefile"
	}
	told := map[string]string{}
	for _, p := range []string{"docs/operating.md", "docs/testing.md"} {
		for _, v := range words(name, t.text[p]) {
			told[v] = p
		}
	}
	return both(is, told, "is not in docs/operating.md (of tests: docs/testing.md)", "is documented and does not exist")
}

func TestSettingsAreDocumented(t *testing.T) {
	t.Parallel()
	config := goFile("main", "type C struct { A string `env:\"LISTEN\"` }")
	check(t, settingsAreDocumented,
		trial{map[string]string{"cmd/holdfast/config.go": config, "docs/operating.md": "`HOLDFAST_LISTEN`"}, 0},
		trial{map[string]string{"cmd/holdfast/config.go": config, "docs/operating.md": "`HOLDFAST_PORT`"}, 2},
		trial{map[string]string{"internal/board/x_test.go": goFile("board", `const c = "HOLDFAST_TEST_X"`)}, 1},
	)
}

// Names of metrics are a promise to dashboards: each is documented, and nothing else is.
func metricsAreDocumented(t *tree) []string {
	makers := []string{"counter", "one", "gauge", "times"}
	is := map[string]string{}
	for _, s := range t.code {
		if s.test || !slices.Contains(slices.Collect(maps.Values(s.imports())), "github.com/prometheus/client_golang/prometheus") {
			continue
		}
		add := func(e ast.Expr) {
			if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				is["holdfast_"+strings.Trim(lit.Value, `"`)] = t.at(s, e)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && slices.Contains(makers, f.Name) && len(n.Args) > 0 {
					add(n.Args[0])
				}
			case *ast.CompositeLit:
				typ, ok := n.Type.(*ast.SelectorExpr)
				if !ok || !strings.HasSuffix(typ.Sel.Name, "Opts") {
					break
				}
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok {
						if k, ok := kv.Key.(*ast.Ident); ok && k.Name == "Name" {
							add(kv.Value)
						}
					}
				}
			}
			return true
		})
	}
	told := map[string]string{}
	for _, m := range words(regexp.MustCompile(`\b(holdfast_[a-z0-9_]+)\b`), t.text["docs/operating.md"]) {
		told[m] = "docs/operating.md"
	}
	return both(is, told, "is not in docs/operating.md", "is documented and does not exist")
}

func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	code := goFile("main", `import "github.com/prometheus/client_golang/prometheus"
		var a, b = counter("a_total", ""), prometheus.GaugeOpts{Name: "b"}`)
	check(t, metricsAreDocumented,
		trial{map[string]string{"cmd/holdfast/metrics.go": code, "docs/operating.md": "holdfast_a_total, holdfast_b"}, 0},
		trial{map[string]string{"cmd/holdfast/metrics.go": code, "docs/operating.md": "holdfast_a_total holdfast_c"}, 2},
	)
}

// Every module that the code imports has its line in docs/dependencies.md, with the version in use.
func dependenciesAreDocumented(t *tree) []string {
	versions := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(?:require )?\s*([a-z0-9.-]+\.[a-z]+/\S+|pgregory\.net/\S+) (v\S+)`).FindAllStringSubmatch(t.text["go.mod"], -1) {
		versions[m[1]] = m[2]
	}
	is := map[string]string{}
	for _, s := range t.code {
		for _, i := range s.file.Imports {
			p := strings.Trim(i.Path.Value, `"`)
			for m, v := range versions {
				if p == m || strings.HasPrefix(p, m+"/") {
					is[m+" "+v] = "go.mod"
				}
			}
		}
	}
	told := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\S+)` \\| (v\\S+) \\|").FindAllStringSubmatch(t.text["docs/dependencies.md"], -1) {
		told[m[1]+" "+m[2]] = "docs/dependencies.md"
	}
	return both(is, told, "is not in docs/dependencies.md", "is documented and not used")
}

func TestDependenciesAreDocumented(t *testing.T) {
	t.Parallel()
	mod := "require (\n\texample.com/a/v2 v2.1.0\n\texample.com/unused v1.0.0 // indirect\n)\n"
	code := goFile("board", `import "example.com/a/v2/b"`)
	check(t, dependenciesAreDocumented,
		trial{map[string]string{"go.mod": mod, "internal/board/x.go": code, "docs/dependencies.md": "| `example.com/a/v2` | v2.1.0 | why |"}, 0},
		trial{map[string]string{"go.mod": mod, "internal/board/x.go": code, "docs/dependencies.md": "| `example.com/a/v2` | v2.0.0 | why |"}, 2},
	)
}

// The project is complete in itself: nothing in it names the place where it happens to be written.
func nothingNamesTheWorkplace(t *tree) []string {
	// Put together here, so that this file is not found.
	place := regexp.MustCompile(strings.Join([]string{`(?:^|[^\w.])/wor` + `k/`, `\.\./share` + `d\b`, `\b` + `issues sho` + `w\b`, `preambl` + `e\.md`, `\bINVARIANT` + `S\.md`, `\b(?:SPE` + `C|DESIG` + `N|STYL` + `E)\.md\b`}, "|"))
	var out []string
	for _, p := range t.list {
		for i, line := range strings.Split(t.text[p], "\n") {
			if m := place.FindString(line); m != "" {
				out = append(out, fmt.Sprintf("%s:%d: %q is of no use to whoever reads the project elsewhere", p, i+1, m))
			}
		}
	}
	return out
}

func TestNothingNamesTheWorkplace(t *testing.T) {
	t.Parallel()
	check(t, nothingNamesTheWorkplace,
		trial{map[string]string{"a.md": "see /wor" + "k/main\nand ../share" + "d/x\nbut not net/work/y"}, 2},
		trial{map[string]string{"a.go": goFile("a", "// SPE"+"C.md says so")}, 1},
	)
}

// In docs/testing.md every thing that must hold has its number, and below it the tests that try it; -update writes those from the comments of the tests.
var update = flag.Bool("update", false, "write the names of tests into docs/testing.md")

const (
	testingDoc = "docs/testing.md"
	untried    = " *(not tried yet)*"
)

var (
	invariant = regexp.MustCompile(`\bC-(\d{2})\b`)
	promise   = regexp.MustCompile(`(?m)^- \*\*C-(\d{2})\*\* .*\n(?:  - .*\n)*`)
)

// testsOf finds the tests whose comments name a number, by number, as lines of the document.
func testsOf(t *tree) map[string][]string {
	found := map[string]map[string]bool{}
	for _, s := range t.code {
		if !s.test || s.dir == "internal/tidy" {
			continue
		}
		for _, g := range s.file.Comments {
			for _, no := range words(invariant, g.Text()) {
				if found[no] == nil {
					found[no] = map[string]bool{}
				}
				found[no][fmt.Sprintf("  - `%s`: %s\n", s.dir, testAround(t, s, g))] = true
			}
		}
	}
	out := map[string][]string{}
	for no, lines := range found {
		out[no] = slices.Sorted(maps.Keys(lines))
	}
	return out
}

// testAround names the test that a comment belongs to: a function, or the entry of a table of tests, which begins with its name.
func testAround(t *tree, s *source, g *ast.CommentGroup) string {
	line := func(p token.Pos) int { return t.fset.Position(p).Line }
	name := path.Base(s.path)
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && (f.Doc == g || f.Pos() <= g.Pos() && g.Pos() <= f.End()) {
			name = f.Name.Name
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		c, ok := n.(*ast.CompositeLit)
		if !ok || len(c.Elts) == 0 {
			return true
		}
		e := c.Elts[0]
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			e = kv.Value
		}
		lit, ok := e.(*ast.BasicLit)
		// The comment is inside of the entry, or stands on the line before it.
		if ok && lit.Kind == token.STRING && c.Type == nil && (c.Pos() <= g.Pos() && g.Pos() <= c.End() || line(g.End())+1 == line(c.Pos())) {
			name = strings.Trim(lit.Value, "\"`")
		}
		return true
	})
	return name
}

func invariantsAreTested(t *tree) []string {
	tests := testsOf(t)
	var out []string
	seen := map[string]bool{}
	for _, m := range promise.FindAllStringSubmatch(t.text[testingDoc], -1) {
		no := m[1]
		_, lines, _ := strings.Cut(m[0], "\n")
		if seen[no] {
			out = append(out, fmt.Sprintf("%s: C-%s stands there twice", testingDoc, no))
		}
		seen[no] = true
		if lines != strings.Join(tests[no], "") {
			out = append(out, fmt.Sprintf("%s: the tests of C-%s are others (make generate)", testingDoc, no))
		}
		switch later := strings.Contains(m[0], untried); {
		case later && len(tests[no]) > 0:
			out = append(out, fmt.Sprintf("%s: C-%s is tried by now (make generate)", testingDoc, no))
		case !later && len(tests[no]) == 0:
			out = append(out, fmt.Sprintf("%s: no test names C-%s in a comment", testingDoc, no))
		}
	}
	for _, no := range slices.Sorted(maps.Keys(tests)) {
		if !seen[no] {
			out = append(out, fmt.Sprintf("%s: C-%s is missing, which %s names", testingDoc, no, strings.TrimSpace(tests[no][0])))
		}
	}
	return out
}

func TestEveryInvariantHasItsTests(t *testing.T) {
	if *update {
		tests := testsOf(repository)
		text := promise.ReplaceAllStringFunc(repository.text[testingDoc], func(m string) string {
			head, _, _ := strings.Cut(m, "\n")
			names := tests[promise.FindStringSubmatch(m)[1]]
			if len(names) > 0 {
				head = strings.TrimSuffix(head, untried)
			}
			return head + "\n" + strings.Join(names, "")
		})
		if err := os.WriteFile("../../"+testingDoc, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		repository.text[testingDoc] = text
	}
	doc := "# x\n\n- **C-01** one\n  - `internal/board`: TestOne\n- **C-02** two *(not tried yet)*\n"
	one := goFile("board", "// C-01\nfunc TestOne() {}")
	check(t, invariantsAreTested,
		trial{map[string]string{testingDoc: doc, "internal/board/x_test.go": one}, 0},
		trial{map[string]string{testingDoc: doc}, 2},
		trial{map[string]string{testingDoc: "- **C-01** one *(not tried yet)*\n  - `internal/board`: TestOne\n", "internal/board/x_test.go": one}, 1},
		trial{map[string]string{testingDoc: doc, "internal/board/x_test.go": one + "// C-03\nfunc TestThree() {}\n"}, 1},
		trial{map[string]string{testingDoc: doc, "internal/board/x_test.go": goFile("board", "var l = []t{\n{\"a seat\", func() { // C-01\n}},\n}")}, 1},
	)
}
