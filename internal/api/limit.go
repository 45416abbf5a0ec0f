package api

import (
	"math/bits"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/httpd"
	"github.com/holdfast-project/holdfast/internal/identity"
)

// attemptsPerHold is how many attempts a customer has for each hold of the limit: people lose places in a rush and try again, and that is not counted as
// a hold; a script that hammers is.
const attemptsPerHold = 12

// maxRates is how many different quotas have a limiter of their own. Events with more different ones share those of the next power of two.
const maxRates = 256

// buyer is what holds are counted by: the policy's limits are of one event.
type buyer struct {
	customer identity.CustomerID
	event    catalog.EventID
}

// holdLimits are the limiters of holds, one for each quota that some event has.
type holdLimits struct {
	holds, replaces, attempts rates
}

type rates struct {
	byQuota sync.Map // int -> *httpd.Limiter[buyer]
	made    atomic.Int32
}

func (l *rates) of(name string, quota int) *httpd.Limiter[buyer] {
	if got, ok := l.byQuota.Load(quota); ok {
		return got.(*httpd.Limiter[buyer])
	}
	if l.made.Add(1) > maxRates && quota&(quota-1) != 0 {
		return l.of(name, 1<<bits.Len(uint(quota)))
	}
	got, _ := l.byQuota.LoadOrStore(quota, httpd.NewLimiter[buyer](httpd.Rate{Name: name, Quota: quota, Window: time.Minute}, 0))
	return got.(*httpd.Limiter[buyer])
}

// ticketOf is a place in the count that may be given back.
type ticketOf struct {
	limiter  *httpd.Limiter[buyer]
	who      buyer
	decision httpd.Decision
}

// take counts an attempt, and a hold or a replacement. A refusal is a problem whose fields say which limit it was.
func (l *holdLimits) take(h http.Header, who buyer, policy *catalog.Policy, replacing bool, now time.Time) (ticketOf, error) {
	quota := max(1, policy.MaxHoldsPerMinute)
	attempts := l.attempts.of("attempts", attemptsPerHold*quota)
	if d := attempts.Allow(who, now); !d.OK {
		attempts.SetHeaders(h, d)
		return ticketOf{}, d.Problem()
	}
	t := ticketOf{who: who}
	if replacing {
		t.limiter = l.replaces.of("replaces", catalog.MaxReplacesPerMinute)
	} else {
		t.limiter = l.holds.of("holds", quota)
	}
	t.decision = t.limiter.Allow(who, now)
	if !t.decision.OK {
		t.limiter.SetHeaders(h, t.decision)
		return ticketOf{}, t.decision.Problem()
	}
	return t, nil
}

// tell says in the answer's fields what is left; counted is false when nothing was taken in the end.
func (t ticketOf) tell(h http.Header, counted bool) {
	if !counted {
		t.limiter.Return(t.who)
		t.decision.Remaining++
	}
	t.limiter.SetHeaders(h, t.decision)
}
