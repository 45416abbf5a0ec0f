package api

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// The page of the OpenAPI document is made here once, without scripts: it works offline, in any browser, and under a strict policy.
var (
	//go:embed docs.html
	docsHTML string
	//go:embed docs.css
	docsStyle string

	docsTemplate = template.Must(template.New("docs").Parse(docsHTML))
)

// stylePolicy allows one style sheet inside the page, by its hash, and where forms may go.
func stylePolicy(style, forms string) string {
	sum := sha256.Sum256([]byte(style))
	return fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action %s; frame-ancestors 'none'",
		base64.StdEncoding.EncodeToString(sum[:]), forms)
}

type docsView struct {
	Title, Version string
	Intro          []string
	Style          template.CSS
	Groups         []docsGroup
	Schemas        []docsSchema
}

type docsGroup struct {
	Name, Description string
	Operations        []docsOperation
}

type docsOperation struct {
	ID, Method, Path, Summary, Description, Auth, Curl string
	Params                                             []docsField
	Body                                               string // name of a schema
	BodyNote                                           string
	Answers                                            []docsAnswer
}

type docsAnswer struct {
	Status, Description, Schema string
	Headers                     []string
}

type docsField struct {
	Name, Where, Type, Ref, Doc string
	Required                    bool
}

type docsSchema struct {
	Name   string
	Fields []docsField
}

var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

func operationOf(item *huma.PathItem, method string) *huma.Operation {
	switch method {
	case http.MethodGet:
		return item.Get
	case http.MethodPost:
		return item.Post
	case http.MethodPut:
		return item.Put
	case http.MethodPatch:
		return item.Patch
	case http.MethodDelete:
		return item.Delete
	}
	return nil
}

func docsPage(doc *huma.OpenAPI) ([]byte, error) {
	view := docsView{
		Title: doc.Info.Title, Version: doc.Info.Version, Intro: strings.Split(doc.Info.Description, "\n\n"),
		Style: template.CSS(docsStyle), // a file of this package
	}
	byTag := map[string][]docsOperation{}
	for path, item := range doc.Paths {
		for _, method := range methods {
			if op := operationOf(item, method); op != nil {
				byTag[op.Tags[0]] = append(byTag[op.Tags[0]], describe(doc, path, method, op))
			}
		}
	}
	for _, tag := range doc.Tags {
		ops := byTag[tag.Name]
		if len(ops) == 0 {
			continue
		}
		slices.SortFunc(ops, func(a, b docsOperation) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(slices.Index(methods, a.Method), slices.Index(methods, b.Method)))
		})
		view.Groups = append(view.Groups, docsGroup{Name: tag.Name, Description: tag.Description, Operations: ops})
	}
	for name, s := range doc.Components.Schemas.Map() {
		view.Schemas = append(view.Schemas, docsSchema{Name: name, Fields: fields(s)})
	}
	slices.SortFunc(view.Schemas, func(a, b docsSchema) int { return cmp.Compare(a.Name, b.Name) })
	var out bytes.Buffer
	err := docsTemplate.Execute(&out, view)
	return out.Bytes(), err
}

func describe(doc *huma.OpenAPI, path, method string, op *huma.Operation) docsOperation {
	d := docsOperation{
		ID: op.OperationID, Method: method, Path: path, Summary: op.Summary, Description: op.Description, Auth: auth(op), Curl: curl(doc, path, method, op),
	}
	for _, p := range op.Parameters {
		f := field(p.Name, p.Schema, p.Required)
		f.Where, f.Doc = p.In, cmp.Or(p.Description, f.Doc)
		d.Params = append(d.Params, f)
	}
	if op.RequestBody != nil {
		d.BodyNote = op.RequestBody.Description
		for _, media := range op.RequestBody.Content {
			d.Body = refName(media.Schema)
		}
	}
	for status, r := range op.Responses {
		a := docsAnswer{Status: status, Description: r.Description}
		for _, media := range r.Content {
			a.Schema = refName(media.Schema)
		}
		for name := range r.Headers {
			a.Headers = append(a.Headers, name)
		}
		slices.Sort(a.Headers)
		d.Answers = append(d.Answers, a)
	}
	slices.SortFunc(d.Answers, func(a, b docsAnswer) int { return cmp.Compare(a.Status, b.Status) })
	return d
}

func auth(op *huma.Operation) string {
	var names []string
	for _, way := range op.Security {
		for name := range way {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " or ")
}

func refName(s *huma.Schema) string {
	if s == nil {
		return ""
	}
	return strings.TrimPrefix(s.Ref, "#/components/schemas/")
}

func fields(s *huma.Schema) []docsField {
	var out []docsField
	for name, p := range s.Properties {
		out = append(out, field(name, p, slices.Contains(s.Required, name)))
	}
	slices.SortFunc(out, func(a, b docsField) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func field(name string, s *huma.Schema, required bool) docsField {
	f := docsField{Name: name, Required: required, Doc: s.Description}
	f.Type, f.Ref = typeName(s)
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			values = append(values, fmt.Sprint(v))
		}
		f.Type = strings.Join(values, " | ")
	}
	return f
}

// typeName says what a value is, and of which schema.
func typeName(s *huma.Schema) (text, ref string) {
	switch {
	case s.Ref != "":
		return refName(s), refName(s)
	case s.Type == huma.TypeArray:
		text, ref = typeName(s.Items)
		return "list of " + text, ref
	case s.Format != "" && s.Type == huma.TypeString:
		return s.Format, ""
	}
	if values, ok := s.AdditionalProperties.(*huma.Schema); ok && s.Type == huma.TypeObject {
		text, ref = typeName(values)
		return "map to " + text, ref
	}
	return cmp.Or(s.Type, "any"), ""
}

// examples of bodies that say more than their schema would.
var examples = map[string]string{
	"place-hold":       `{"seats":["F5","F6"]}`,
	"checkout":         `{"email":"ada@example.org","name":"Ada Lovelace"}`,
	"simulate-payment": `{"outcome":"succeed"}`,
	"block-seats":      `{"seats":["A1","A2"]}`,
	"unblock-seats":    `{"seats":["A1","A2"]}`,
	"refund-booking":   `{"reason":"The show was moved"}`,
	"edit-event":       `{"paused":true}`,
	"add-layout":       `@layout.json`,
	"create-event": `{"kind":"cinema","title":"The Night Train","venue":{"name":"Hall 1","city":"Berlin","timeZone":"Europe/Berlin"},` +
		`"startsAt":"2030-01-01T19:00:00Z","currency":"EUR","layoutId":"cinema-hall","prices":{"Stalls":1200}}`,
}

// curl shows a call that can be typed. $URL is the server's address.
func curl(doc *huma.OpenAPI, path, method string, op *huma.Operation) string {
	var b strings.Builder
	b.WriteString("curl")
	if method != http.MethodGet {
		b.WriteString(" -X " + method)
	}
	for _, way := range op.Security {
		if _, ok := way["admin"]; ok {
			b.WriteString(` -H "Authorization: Bearer $ADMIN_KEY"`)
		}
		if _, ok := way["session"]; ok {
			b.WriteString(` -H "Authorization: Bearer $TOKEN"`)
		}
	}
	for _, p := range op.Parameters {
		switch p.Name {
		case "Idempotency-Key":
			b.WriteString(` -H "Idempotency-Key: $(uuidgen)"`)
		case "If-Match":
			b.WriteString(` -H 'If-Match: "1"'`)
		}
	}
	if op.RequestBody != nil {
		body, ok := examples[op.OperationID]
		if !ok {
			body = exampleOf(doc, op)
		}
		b.WriteString(` -H "Content-Type: application/json" -d '` + body + `'`)
	}
	b.WriteString(` "$URL` + strings.NewReplacer("{", "$", "}", "").Replace(path) + `"`)
	return b.String()
}

// exampleOf makes a body out of the examples of the schema's fields.
func exampleOf(doc *huma.OpenAPI, op *huma.Operation) string {
	out := map[string]any{}
	for _, media := range op.RequestBody.Content {
		s := media.Schema
		if s.Ref != "" {
			s = doc.Components.Schemas.SchemaFromRef(s.Ref)
		}
		for name, p := range s.Properties {
			if len(p.Examples) > 0 {
				out[name] = p.Examples[0]
			}
		}
	}
	text, err := json.Marshal(out)
	if err != nil {
		return "{}"
	}
	return string(text)
}
