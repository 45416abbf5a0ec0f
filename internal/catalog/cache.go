package catalog

import "container/list"

// lru keeps what was used last, up to a total weight. Its user locks.
type lru[K comparable, V any] struct {
	most, weight int
	byKey        map[K]*list.Element
	used         list.List // of *kept[K, V], last used first
	dropped      func(K, V)
}

type kept[K comparable, V any] struct {
	key    K
	value  V
	weight int
}

func newLRU[K comparable, V any](most int) *lru[K, V] {
	return &lru[K, V]{most: most, byKey: map[K]*list.Element{}}
}

func (l *lru[K, V]) get(k K) (v V, ok bool) {
	el, ok := l.byKey[k]
	if !ok {
		return v, false
	}
	l.used.MoveToFront(el)
	return el.Value.(*kept[K, V]).value, true
}

// put keeps v, even when it alone is heavier than all may be.
func (l *lru[K, V]) put(k K, v V, weight int) {
	if el, ok := l.byKey[k]; ok {
		old := el.Value.(*kept[K, V])
		l.weight += weight - old.weight
		old.value, old.weight = v, weight
		l.used.MoveToFront(el)
	} else {
		l.byKey[k] = l.used.PushFront(&kept[K, V]{k, v, weight})
		l.weight += weight
	}
	for l.weight > l.most && l.used.Len() > 1 {
		l.remove(l.used.Back())
	}
}

func (l *lru[K, V]) drop(k K) {
	if el, ok := l.byKey[k]; ok {
		l.remove(el)
	}
}

func (l *lru[K, V]) remove(el *list.Element) {
	old := l.used.Remove(el).(*kept[K, V])
	delete(l.byKey, old.key)
	l.weight -= old.weight
	if l.dropped != nil {
		l.dropped(old.key, old.value)
	}
}
