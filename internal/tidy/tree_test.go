package tidy

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"
)

const module = "github.com/holdfast-project/holdfast"

// tree is the repository, or a bad one that a test made up.
type tree struct {
	fset *token.FileSet
	text map[string]string // every text file by its path
	list []string          // their paths, sorted
	code []*source
}

// source is a parsed Go file.
type source struct {
	path string
	dir  string
	file *ast.File
	test bool // a _test.go, or part of a package of tests (bookingtest)
}

// What is not part of the project: tools, data, what builds leave.
var skipped = []string{".git", ".tools", "bin", "data", "node_modules"}

func load(files fs.FS) (*tree, error) {
	t := &tree{fset: token.NewFileSet(), text: map[string]string{}}
	err := fs.WalkDir(files, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // an editor's or another test's passing file
			}
			return err
		}
		if d.IsDir() {
			if slices.Contains(skipped, p) {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		data, err := fs.ReadFile(files, p)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if !utf8.Valid(data) || strings.ContainsRune(string(data), 0) {
			return nil
		}
		t.text[p] = string(data)
		t.list = append(t.list, p)
		if path.Ext(p) != ".go" || strings.Contains(p, "testdata/") {
			return nil
		}
		f, err := parser.ParseFile(t.fset, p, data, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := path.Dir(p)
		t.code = append(t.code, &source{
			path: p, dir: dir, file: f, test: strings.HasSuffix(p, "_test.go") || strings.HasSuffix(dir, "test") || dir == "internal/tidy",
		})
		return nil
	})
	return t, err
}

func (t *tree) at(s *source, n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.path, t.fset.Position(n.Pos()).Line)
}

// imports lists what a file imports, by the name that it uses for it.
func (s *source) imports() map[string]string {
	out := map[string]string{}
	for _, i := range s.file.Imports {
		p := strings.Trim(i.Path.Value, `"`)
		name := path.Base(strings.TrimSuffix(p, "/v2"))
		if i.Name != nil {
			name = i.Name.Name
		}
		out[name] = p
	}
	return out
}

// uses finds the uses of package.name selectors, such as time.Now, whatever the package is called in the file.
func (s *source) uses(pkg string, names ...string) []ast.Node {
	imports := s.imports()
	var found []ast.Node
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok || !slices.Contains(names, sel.Sel.Name) {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); ok && imports[id.Name] == pkg {
			found = append(found, n)
		}
		return true
	})
	return found
}

// markdown lists the documents.
func (t *tree) markdown() []string {
	return slices.DeleteFunc(slices.Clone(t.list), func(p string) bool { return path.Ext(p) != ".md" })
}

// repository is this one; tests run in their package's folder.
var repository = func() *tree {
	t, err := load(os.DirFS("../.."))
	if err != nil {
		panic(err)
	}
	return t
}()

// rule finds what is wrong with a tree.
type rule func(*tree) []string

// check runs a rule on the repository, where it must find nothing, and on bad trees, in each of which it must find exactly so many things.
func check(t *testing.T, r rule, bad ...trial) {
	t.Helper()
	for _, finding := range r(repository) {
		t.Error(finding)
	}
	for i, b := range bad {
		files := fstest.MapFS{}
		for p, text := range b.files {
			files[p] = &fstest.MapFile{Data: []byte(text)}
		}
		tr, err := load(files)
		if err != nil {
			t.Fatalf("bad tree %d: %v", i, err)
		}
		if found := r(tr); len(found) != b.want {
			t.Errorf("bad tree %d: %d findings, want %d:\n%s", i, len(found), b.want, strings.Join(found, "\n"))
		}
	}
}

// trial is a made-up tree and how many findings it must give.
type trial struct {
	files map[string]string
	want  int
}

func goFile(pkg, body string) string { return "package " + pkg + "\n\n" + body + "\n" }

// words finds all matches of the first group.
func words(re *regexp.Regexp, text string) []string {
	var out []string
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// both compares what there is with what is documented.
func both(is, told map[string]string, missing, stale string) []string {
	var out []string
	for name, where := range is {
		if _, ok := told[name]; !ok {
			out = append(out, fmt.Sprintf("%s: %s "+missing, where, name))
		}
	}
	for name, where := range told {
		if _, ok := is[name]; !ok {
			out = append(out, fmt.Sprintf("%s: %s "+stale, where, name))
		}
	}
	slices.Sort(out)
	return out
}
