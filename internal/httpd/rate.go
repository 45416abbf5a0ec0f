package httpd

import (
	"hash/maphash"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

// MaxRateKeys bounds how many keys one limiter remembers; about 100 bytes each.
const MaxRateKeys = 100_000

const (
	rateShards  = 64
	rateSampled = 8 // keys looked at to find one that can be forgotten
)

// Rate is a quota: at most Quota at once, refilled evenly so that Quota more are there after Window.
type Rate struct {
	Name   string // in the RateLimit fields: letters, digits and dashes
	Quota  int
	Window time.Duration
}

// Limiter counts requests per key. It is a token bucket kept as one instant per key, the time at which the bucket will be full
// again (the generic cell rate algorithm, ITU-T I.371), so that a full bucket needs no memory at all.
//
// Memory is bounded by MaxRateKeys. When a shard is full, the key nearest to a full bucket among a few is forgotten: a flood of
// new keys makes the limiter lenient to some, it never locks anybody out.
type Limiter[K comparable] struct {
	rate   Rate
	step   time.Duration // refill time of one token
	most   int           // keys a shard
	policy []string
	seed   maphash.Seed
	shards [rateShards]rateShard[K]
}

type rateShard[K comparable] struct {
	mu   sync.Mutex
	full map[K]int64 // Unix nanoseconds at which the key's bucket is full
	_    [48]byte    // a cache line each
}

// Decision is the answer for one request.
type Decision struct {
	OK         bool
	Remaining  int           // tokens left
	Reset      time.Duration // until the bucket is full
	RetryAfter time.Duration // until the next token, when not OK
}

// NewLimiter makes one that remembers at most keys keys (MaxRateKeys when 0). It panics on a rate without quota or window, which is
// a mistake in the program: configuration must be checked where it is read.
func NewLimiter[K comparable](rate Rate, keys int) *Limiter[K] {
	if rate.Quota < 1 || rate.Window < time.Duration(rate.Quota) {
		panic("httpd: rate without quota or window")
	}
	if keys < 1 {
		keys = MaxRateKeys
	}
	l := &Limiter[K]{
		rate: rate,
		step: rate.Window / time.Duration(rate.Quota),
		most: max(1, keys/rateShards),
		seed: maphash.MakeSeed(),
	}
	w := strconv.FormatInt(int64(max(1, rate.Window/time.Second)), 10)
	l.policy = []string{`"` + rate.Name + `";q=` + strconv.Itoa(rate.Quota) + `;w=` + w}
	for i := range l.shards {
		l.shards[i].full = make(map[K]int64)
	}
	return l
}

// Allow takes a token of key, if there is one. A refused request costs none.
func (l *Limiter[K]) Allow(key K, now time.Time) Decision {
	s := &l.shards[maphash.Comparable(l.seed, key)%rateShards]
	at := now.UnixNano()
	s.mu.Lock()
	defer s.mu.Unlock()
	full, known := s.full[key]
	full = max(full, at)
	// The bucket holds Quota tokens: it is at most Quota steps away from being full, unless the clock was set back. Then it
	// counts as empty from now on, instead of locking the key out for as long.
	room := l.step * time.Duration(l.rate.Quota)
	if latest := at + int64(room); full > latest {
		full = latest
		s.full[key] = full
	}
	debt := time.Duration(full-at) + l.step
	if debt > room {
		return Decision{Reset: debt - l.step, RetryAfter: debt - room}
	}
	if !known && len(s.full) >= l.most {
		s.forget(at)
	}
	s.full[key] = at + int64(debt)
	return Decision{OK: true, Remaining: int((room - debt) / l.step), Reset: debt}
}

// Return gives back a token that Allow took, for a request that turned out not to count.
func (l *Limiter[K]) Return(key K) {
	s := &l.shards[maphash.Comparable(l.seed, key)%rateShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if full, known := s.full[key]; known {
		s.full[key] = full - int64(l.step)
	}
}

// forget makes room for one key.
func (s *rateShard[K]) forget(now int64) {
	var victim K
	soonest, looked := int64(math.MaxInt64), 0
	for key, full := range s.full { // the order of a map is random enough to sample
		if full <= now {
			delete(s.full, key)
			soonest = math.MinInt64 // room is made; go on, they are free
		} else if full < soonest {
			victim, soonest = key, full
		}
		if looked++; looked == rateSampled {
			break
		}
	}
	if soonest != math.MinInt64 {
		delete(s.full, victim)
	}
}

// Keys is the number of keys remembered.
func (l *Limiter[K]) Keys() (n int) {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		n += len(s.full)
		s.mu.Unlock()
	}
	return n
}

// Limit is the middleware. key names what is counted; false lets the request through uncounted. The fields are those of
// draft-ietf-httpapi-ratelimit-headers-11: RateLimit-Policy says the quota q in a window of w seconds, RateLimit the tokens r left
// and the seconds t until all of them are back.
func (l *Limiter[K]) Limit(key func(r *http.Request) (K, bool)) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			k, counted := key(r)
			if !counted {
				next.ServeHTTP(w, r)
				return
			}
			d := l.Allow(k, time.Now())
			l.SetHeaders(w.Header(), d)
			if !d.OK {
				WriteProblem(w, r, d.Problem())
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// SetHeaders adds the fields of a decision, for handlers that know the key only after reading the request. Several limiters may
// add theirs.
func (l *Limiter[K]) SetHeaders(h http.Header, d Decision) {
	h["Ratelimit-Policy"] = append(h["Ratelimit-Policy"], l.policy...)
	var text [64]byte
	b := append(text[:0], '"')
	b = append(b, l.rate.Name...)
	b = strconv.AppendInt(append(b, `";r=`...), int64(d.Remaining), 10)
	b = strconv.AppendInt(append(b, `;t=`...), int64((d.Reset+time.Second-1)/time.Second), 10)
	h["Ratelimit"] = append(h["Ratelimit"], string(b))
}

// Problem refuses a request for which there was no token.
func (d Decision) Problem() Problem {
	p := TooManyRequests.Problem("")
	p.RetryAfter = d.RetryAfter
	return p
}

// ByAddress counts by the client's address; of IPv6 by the first 64 bits, for that is what one customer of a network gets.
// Loopback is counted only if asked for: it is the bench, a test, or a proxy on the same machine that should be configured as one.
func ByAddress(loopback bool) func(r *http.Request) (netip.Addr, bool) {
	return func(r *http.Request) (netip.Addr, bool) {
		addr := RequestOf(r.Context()).Client
		if !addr.IsValid() || addr.IsLoopback() && !loopback {
			return netip.Addr{}, false
		}
		if addr.Is6() {
			network, _ := addr.Prefix(64) // cannot fail: 64 bits fit into any IPv6 address
			addr = network.Addr()
		}
		return addr, true
	}
}
