package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// declared lists the exported types of a file.
func declared(s *source) map[string]bool {
	out := map[string]bool{}
	for _, d := range s.file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range g.Specs {
			if ts, ok := spec.(*ast.TypeSpec); ok && ts.Name.IsExported() {
				out[ts.Name.Name] = true
			}
		}
	}
	return out
}

// Time is a parameter: rules that read the clock can't be tried at any other instant.
func timeIsAParameter(t *tree) []string {
	// A load generator measures real time and is no rule.
	clocks := []string{"cmd/holdfast", "internal/httpd", "internal/loadgen"}
	var out []string
	for _, s := range t.code {
		// A client of the API lives in other people's programs, where nobody passes it a clock.
		if s.test || slices.Contains(clocks, s.dir) || s.dir == "api/client" {
			continue
		}
		for _, n := range s.uses("time", "Now", "Since", "Until") {
			out = append(out, fmt.Sprintf("%s: take the time as a parameter; only cmd and httpd read the clock", t.at(s, n)))
		}
	}
	return out
}

func TestTimeIsAParameter(t *testing.T) {
	t.Parallel()
	check(t, timeIsAParameter,
		trial{map[string]string{"internal/booking/x.go": goFile("booking", `import "time"; var x = time.Now()`)}, 1},
		trial{map[string]string{"internal/booking/x.go": goFile("booking", `import clock "time"; var x = clock.Now`)}, 1},
		trial{map[string]string{"internal/httpd/x.go": goFile("httpd", `import "time"; var x = time.Now()`)}, 0},
	)
}

// No test sleeps, for a slow machine makes it fail and a fast one makes it slow; in a synctest bubble sleeping only moves the clock.
// The program waits on timers and contexts, which can be stopped.
func nobodySleeps(t *tree) []string {
	bubbles := map[string]bool{}
	for _, s := range t.code {
		for _, p := range s.imports() {
			if p == "testing/synctest" {
				bubbles[s.dir] = true
			}
		}
	}
	var out []string
	for _, s := range t.code {
		for _, n := range s.uses("time", "Sleep") {
			if !s.test || !bubbles[s.dir] {
				out = append(out, fmt.Sprintf("%s: wait on a signal or a timer; in tests use testing/synctest", t.at(s, n)))
			}
		}
	}
	return out
}

func TestNobodySleeps(t *testing.T) {
	t.Parallel()
	check(t, nobodySleeps,
		trial{map[string]string{"internal/board/x_test.go": goFile("board", `import "time"; func f() { time.Sleep(1) }`)}, 1},
		trial{map[string]string{"internal/board/x.go": goFile("board", `import "time"; func f() { time.Sleep(1) }`)}, 1},
		trial{map[string]string{"internal/board/x_test.go": goFile("board", `import ("time"; "testing/synctest"); func f() { synctest.Test(nil, nil); time.Sleep(1) }`)}, 0},
	)
}

// Packages return values and log through slog; only cmd talks to people, and only main ends the program.
func onlyTheCommandTalks(t *tree) []string {
	var out []string
	for _, s := range t.code {
		if s.test || strings.HasPrefix(s.dir, "cmd/") {
			continue
		}
		for _, n := range slices.Concat(s.uses("fmt", "Print", "Printf", "Println"), s.uses("os", "Stdout", "Stderr", "Exit")) {
			out = append(out, fmt.Sprintf("%s: return it or log it through the logger that was given", t.at(s, n)))
		}
	}
	return out
}

func TestOnlyTheCommandTalks(t *testing.T) {
	t.Parallel()
	check(t, onlyTheCommandTalks,
		trial{map[string]string{"internal/board/x.go": goFile("board", `import "fmt"; func f() { fmt.Println("x") }`)}, 1},
		trial{map[string]string{"internal/board/x.go": goFile("board", `import "os"; func f() { os.Exit(1) }`)}, 1},
		trial{map[string]string{"cmd/holdfast/x.go": goFile("main", `import "fmt"; func f() { fmt.Println("x") }`)}, 0},
	)
}

// Times of comparisons tell an attacker how much was right: secrets are compared by crypto/hmac or crypto/subtle.
func secretsAreComparedInConstantTime(t *tree) []string {
	secret := regexp.MustCompile(`(?i)(secret|signature|mac|adminkey|password|token)$`)
	name := func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.Ident:
			return e.Name
		case *ast.SelectorExpr:
			return e.Sel.Name
		case *ast.CallExpr:
			return ""
		}
		return ""
	}
	var out []string
	for _, s := range t.code {
		if s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			b, ok := n.(*ast.BinaryExpr)
			if !ok || b.Op != token.EQL && b.Op != token.NEQ || !secret.MatchString(name(b.X)) && !secret.MatchString(name(b.Y)) {
				return true
			}
			for _, side := range []ast.Expr{b.X, b.Y} {
				if _, literal := side.(*ast.BasicLit); literal || name(side) == "nil" {
					return true // whether there is one is no secret
				}
			}
			out = append(out, fmt.Sprintf("%s: compare secrets with hmac.Equal or subtle.ConstantTimeCompare", t.at(s, n)))
			return true
		})
	}
	return out
}

func TestSecretsAreComparedInConstantTime(t *testing.T) {
	t.Parallel()
	check(t, secretsAreComparedInConstantTime,
		trial{map[string]string{"internal/identity/x.go": goFile("identity", `func f(a, signature string) bool { return a == signature }`)}, 1},
		trial{map[string]string{"internal/identity/x.go": goFile("identity", `func f(k struct{ Secret string }, b string) bool { return b != k.Secret }`)}, 1},
		trial{map[string]string{"internal/identity/x.go": goFile("identity", `func f(token string) bool { return token == "" }`)}, 0},
	)
}

// A skipped test says why, so that whoever reads the output knows what was not tried. Comments hold what is true now, not what somebody meant to do.
func nothingIsLeftOver(t *tree) []string {
	later := regexp.MustCompile(`\b(` + strings.Join([]string{"TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"}, "|") + `)\b`)
	var out []string
	for _, s := range t.code {
		for _, g := range s.file.Comments {
			if later.MatchString(g.Text()) {
				out = append(out, fmt.Sprintf("%s: do it, or file an issue", t.at(s, g)))
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && (sel.Sel.Name == "SkipNow" || sel.Sel.Name == "Skip" && len(call.Args) == 0) && s.test {
				out = append(out, fmt.Sprintf("%s: say why the test is skipped", t.at(s, n)))
			}
			return true
		})
	}
	return out
}

func TestNothingIsLeftOver(t *testing.T) {
	t.Parallel()
	check(t, nothingIsLeftOver,
		trial{map[string]string{"internal/board/x.go": goFile("board", "// TO"+"DO: later\nvar x int")}, 1},
		trial{map[string]string{"internal/board/x_test.go": goFile("board", "func f(t interface{ Skip(...any); SkipNow() }) { t.Skip(); t.SkipNow(); t.Skip(`no zbarimg`) }")}, 2},
	)
}
