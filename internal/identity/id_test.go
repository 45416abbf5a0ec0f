package identity

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func TestIDsSurviveTheirText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var c CustomerID
		copy(c[:], rapid.SliceOfN(rapid.Byte(), len(c), len(c)).Draw(t, "bits"))
		got, err := ParseCustomerID(c.String())
		if err != nil || got != c {
			t.Fatalf("%s: %v %v", c, got, err)
		}
	})
}

func TestAnIDHasOneSpelling(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(NewCustomerID().String())
		i := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		before := text[i]
		text[i] = rapid.Byte().Filter(func(b byte) bool { return b != before }).Draw(t, "byte")
		if got, err := ParseCustomerID(string(text)); err == nil && got.String() != string(text) {
			t.Fatalf("%q reads as %s", text, got)
		}
	})
}

func TestParseRefusesWhatIsNoID(t *testing.T) {
	t.Parallel()
	good := CustomerID{}.String()
	for _, bad := range []string{"", "cus", "cus_", good[:len(good)-1], good + "a", "hld" + good[3:], good[:3] + "-" + good[4:], good[:len(good)-1] + "9", good[:10] + "\n" + good[10:], good[:10] + "\n" + good[11:]} {
		if _, err := ParseCustomerID(bad); !errors.Is(err, ErrID) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
