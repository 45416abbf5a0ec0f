package loadgen

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// agenda is what is to be done later, soonest first. Workers take from it; none of them waits for a customer who waits.
type agenda struct {
	mu   sync.Mutex
	all  tasks
	busy int // tasks being done
}

type task struct {
	due time.Time
	do  func(context.Context, *worker) error
}

type tasks []task

func (t tasks) Len() int           { return len(t) }
func (t tasks) Less(i, j int) bool { return t[i].due.Before(t[j].due) }
func (t tasks) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *tasks) Push(x any)        { *t = append(*t, x.(task)) }

func (t *tasks) Pop() any {
	old := *t
	last := old[len(old)-1]
	old[len(old)-1] = task{}
	*t = old[:len(old)-1]
	return last
}

func (a *agenda) add(due time.Time, do func(context.Context, *worker) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	heap.Push(&a.all, task{due, do})
}

// take gives what is due; done must be called after it was done.
func (a *agenda) take(now time.Time) (task, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.all) == 0 || a.all[0].due.After(now) {
		return task{}, false
	}
	a.busy++
	return heap.Pop(&a.all).(task), true
}

func (a *agenda) done() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy--
}

// idle says that nothing is being done and nothing is to be done.
func (a *agenda) idle() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.busy == 0 && len(a.all) == 0
}
