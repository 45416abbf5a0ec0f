package catalog

import (
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast-project/holdfast/internal/identity"
)

func TestTermsAreWordsWithoutCaseAndMarks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                          nil,
		"  -–!'\"*() ":              nil,
		"The Night-Train, VN123":    {"the", "night", "train", "vn123"},
		"Đà Nẵng ĐÀ":                {"da", "nang", "da"},
		"Cafe\u0301 cafÉ":           {"cafe", "cafe"},
		"Straße ÆRØ Łódź Þór İstan": {"strasse", "aero", "lodz", "thor", "istan"},
		"東京ドームシティ2030年":             {"東 京 ド ー ム シ テ ィ", "2030", "年"},
		"K-POP서울공연":                 {"k", "pop", "서 울 공 연"},
		"ก็ดี":                      {"ก็ ดี"},
		"a็b":                       {"a็b"},
		"❤️ \ufe0f x\ufe0f":         {"x\ufe0f"},
		"ёлка Αθήνα ς":              {"елка", "αθηνα", "σ"},
		"x\xff\x00y":                {"x", "y"},
	} {
		if diff := cmp.Diff(want, Terms(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestNoTermHasAQuoteOrIsOnlyMarks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		for _, term := range Terms(rapid.String().Draw(t, "text")) {
			if !strings.ContainsFunc(term, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
				t.Fatalf("%q", term)
			}
			if i := strings.IndexFunc(term, func(r rune) bool {
				return r != ' ' && !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
			}); i >= 0 {
				t.Fatalf("%q has %q", term, term[i:])
			}
		}
	})
}

func TestSlugsOfTitles(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]string{
		"The Night Train": "the-night-train", "  --x--  ": "x", "l'été à Paris": "lete-a-paris", "Đà Nẵng": "da-nang", "東京": "", "": "", "50% off!": "50-off", "Cafe\u0301": "cafe",
		strings.Repeat("ab ", 50): strings.TrimSuffix(strings.Repeat("ab-", 27)[:80], "-"),
	} {
		if got := Slug(title); got != want {
			t.Errorf("%q: %q, want %q", title, got, want)
		}
	}
}

// Addresses take either: whatever is a slug must never be read as an id.
func TestASlugIsNeverAnID(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		if s := Slug(rapid.String().Draw(t, "title")); s != "" && (!slugForm.MatchString(s) || len(s) > MaxSlugBytes) {
			t.Fatalf("%q is no slug", s)
		}
		id := EventID(rapid.Int64Min(1).Draw(t, "id"))
		text := id.String()
		if slugForm.MatchString(text) {
			t.Fatalf("the id %s is a slug", text)
		}
		if back, err := ParseEventID(text); err != nil || back != id {
			t.Fatalf("%s is read as %d, %v, want %d", text, back, err, id)
		}
	})
	for _, text := range []string{"", "evt_", "evt_aaaa", "cus_aaaaaaaaaaaaa", identity.EncodeID("evt", make([]byte, 8)), identity.EncodeID("evt", []byte{0x80, 0, 0, 0, 0, 0, 0, 1})} {
		if id, err := ParseEventID(text); err == nil {
			t.Errorf("%q is the event %d", text, id)
		}
	}
}

func TestTheMemoryKeepsWhatWasUsedLast(t *testing.T) {
	t.Parallel()
	l := newLRU[string, int](10)
	dropped := map[string]int{}
	l.dropped = func(k string, v int) { dropped[k] = v }
	for i, k := range []string{"a", "b", "c", "d", "e"} {
		l.put(k, i, 2)
	}
	l.get("a")
	l.put("f", 5, 2)
	if _, ok := l.get("b"); ok || dropped["b"] != 1 || len(dropped) != 1 {
		t.Errorf("dropped %v", dropped)
	}
	l.put("a", 7, 6) // heavier than before
	for k, want := range map[string]bool{"a": true, "b": false, "c": false, "d": false, "e": true, "f": true} {
		if _, ok := l.get(k); ok != want {
			t.Errorf("%s is there: %v, want %v", k, ok, want)
		}
	}
	l.put("giant", 1, 100) // alone heavier than all may be, but asked for
	if v, ok := l.get("giant"); !ok || v != 1 || l.used.Len() != 1 || l.weight != 100 {
		t.Errorf("%d things of weight %d", l.used.Len(), l.weight)
	}
	l.drop("giant")
	l.drop("nothing")
	if l.used.Len() != 0 || l.weight != 0 {
		t.Errorf("%d things of weight %d", l.used.Len(), l.weight)
	}
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
