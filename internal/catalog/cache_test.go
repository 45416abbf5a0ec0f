package catalog

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The memory against the plainest model: a list in the order of use.
func TestTheMemoryKeepsWhatWasUsedLastWithinItsLimit(t *testing.T) {
	t.Parallel()
	const most = 20
	type entry struct{ key, value, weight int }
	rapid.Check(t, func(t *rapid.T) {
		l := newLRU[int, int](most)
		dropped := map[int]bool{}
		l.dropped = func(k, _ int) { dropped[k] = true }
		var model []entry // used last first
		take := func(k int) (entry, bool) {
			i := slices.IndexFunc(model, func(e entry) bool { return e.key == k })
			if i < 0 {
				return entry{}, false
			}
			e := model[i]
			model = slices.Delete(model, i, i+1)
			return e, true
		}
		t.Repeat(map[string]func(*rapid.T){
			"get": func(t *rapid.T) {
				k := rapid.IntRange(0, 9).Draw(t, "key")
				want, there := take(k)
				if there {
					model = slices.Insert(model, 0, want)
				}
				if v, ok := l.get(k); ok != there || v != want.value {
					t.Fatalf("get(%d) = %d, %v, want %d, %v", k, v, ok, want.value, there)
				}
			},
			"put": func(t *rapid.T) {
				e := entry{rapid.IntRange(0, 9).Draw(t, "key"), rapid.Int().Draw(t, "value"), rapid.IntRange(1, most+5).Draw(t, "weight")}
				take(e.key)
				model = slices.Insert(model, 0, e)
				clear(dropped)
				l.put(e.key, e.value, e.weight)
				for total := func() (n int) {
					for _, e := range model {
						n += e.weight
					}
					return n
				}; total() > most && len(model) > 1; {
					last := model[len(model)-1]
					model = model[:len(model)-1]
					if !dropped[last.key] {
						t.Fatalf("%d was not dropped for %+v", last.key, e)
					}
				}
			},
			"drop": func(t *rapid.T) {
				k := rapid.IntRange(0, 9).Draw(t, "key")
				take(k)
				l.drop(k)
			},
			"": func(t *rapid.T) {
				weight := 0
				for _, e := range model {
					weight += e.weight
				}
				if l.weight != weight || len(l.byKey) != len(model) || l.used.Len() != len(model) {
					t.Fatalf("weighs %d with %d, want %d with %d", l.weight, len(l.byKey), weight, len(model))
				}
			},
		})
	})
}
