package venue

import (
	"os"
	"strings"
	"testing"
)

func TestTheExamplesInTheDocumentAreLayouts(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/layouts.md")
	if err != nil {
		t.Fatal(err)
	}
	wantCodes := [][]string{
		{"A1", "C20"},
		{"L-1-1", "L-1-19", "R-1-18", "Tables-T1-a"},
		{"1A", "12A", "30F"},
		{"1-2"},
	}
	examples := strings.Split(string(text), "```json\n")[1:]
	if len(examples) != len(wantCodes) {
		t.Fatalf("%d examples, want %d", len(examples), len(wantCodes))
	}
	for i, example := range examples {
		example, _, _ = strings.Cut(example, "```")
		l, warnings := parse(t, []byte(example))
		if len(warnings) > 0 {
			t.Errorf("%s: %v", l.Name, warnings)
		}
		for _, code := range wantCodes[i] {
			if _, ok := l.SeatByCode(code); !ok {
				t.Errorf("%s has no seat %s", l.Name, code)
			}
		}
	}
}
