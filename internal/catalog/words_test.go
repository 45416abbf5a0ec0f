package catalog

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestTermsAreWhatPeopleMean(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                       nil,
		"  ,;\"*^(){}":           nil,
		"Night Train":            {"night", "train"},
		"L'Été à Łódź":           {"l", "ete", "a", "lodz"},
		"Đà Nẵng":                {"da", "nang"},
		"cafe\u0301":             {"cafe"},
		"Straße":                 {"strasse"},
		"SGN–HAN VN123":          {"sgn", "han", "vn123"},
		"東京ドーム":                  {"東 京 ド ー ム"},
		"Live東京2030":             {"live", "東 京", "2030"},
		"ΆΝΟΙΞΗ Ёлка":            {"ανοιξη", "елка"},
		"a\x00b\xffc":            {"a", "b", "c"},
		"🎸 rock":                 {"rock"},
		`rock" OR "1`:            {"rock", "or", "1"},
		"NEAR(a b) title:x -y +": {"near", "a", "b", "title", "x", "y"},
	} {
		if diff := cmp.Diff(want, Terms(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// Index and questions are split by the same function: what was split once must be split the same again, and no sign of a query language may pass.
func TestTermsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("aÉđ \"'*():^-東ーก็한\u0301\u200d🎸")))).Draw(t, "text")
		terms := Terms(text)
		for _, term := range terms {
			if term == "" || !utf8.ValidString(term) || strings.ContainsFunc(term, func(r rune) bool {
				return r != ' ' && !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
			}) {
				t.Fatalf("%q has the term %q", text, term)
			}
		}
		if diff := cmp.Diff(strings.Fields(strings.Join(terms, " ")), strings.Fields(strings.Join(Terms(strings.Join(terms, " ")), " "))); diff != "" {
			t.Fatalf("%q: %s", text, diff)
		}
	})
}

func TestASlugIsMadeOfAnyTitleOrNone(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]string{
		"Night of the Bells": "night-of-the-bells", "  --- ": "", "夜": "", "Élève n° 7": "eleve-n-7", "It's, well…": "its-well", "SGN–HAN VN123": "sgn-han-vn123",
		strings.Repeat("a", MaxSlugBytes-1) + " b": strings.Repeat("a", MaxSlugBytes-1),
	} {
		if got := Slug(title); got != want {
			t.Errorf("%q makes %q, want %q", title, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		title := rapid.String().Draw(t, "title")
		if s := Slug(title); s != "" && (len(s) > MaxSlugBytes || !slugForm.MatchString(s)) {
			t.Fatalf("%q makes %q", title, s)
		}
	})
}

func TestLayoutsOfDifferentNamesNeverMeet(t *testing.T) {
	t.Parallel()
	if a := layoutID("Cinema hall"); a != "cinema-hall" {
		t.Errorf("a plain name became %q", a)
	}
	ids := map[string]string{}
	for _, name := range []string{"Saal 1", "Saal №1", "Säal 1", "saal: 1", "大ホール", "小ホール", "…"} {
		id := layoutID(name)
		if other, taken := ids[id]; taken || id == "" || id != strings.Trim(id, "-") {
			t.Errorf("%q has the id %q, as %q", name, id, other)
		}
		ids[id] = name
	}
}
