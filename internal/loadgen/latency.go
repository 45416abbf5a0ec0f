package loadgen

import (
	"math/bits"
	"time"
)

const (
	subBits  = 5                                   // a power of two is cut into 32 parts: a time is known to about 3 %
	maxPower = 36                                  // 2^36 ns are 69 s; what is longer counts as that
	buckets  = (maxPower - subBits + 2) << subBits // of one histogram
)

// latencies counts how often which time was seen. The zero value is empty; one goroutine writes it.
type latencies struct {
	counts [buckets]uint32
	n      uint64
	most   time.Duration
}

func (l *latencies) add(d time.Duration) {
	l.counts[bucketOf(d)]++
	l.n++
	l.most = max(l.most, d)
}

func (l *latencies) merge(other *latencies) {
	for i, n := range other.counts {
		l.counts[i] += n
	}
	l.n += other.n
	l.most = max(l.most, other.most)
}

// quantile is the time that a share q of all was not above, rounded up to its bucket's end and never above the longest seen; 0 when there is none.
func (l *latencies) quantile(q float64) time.Duration {
	rank := uint64(q * float64(l.n))
	seen := uint64(0)
	for i, n := range l.counts {
		if seen += uint64(n); seen > rank {
			return min(bucketEnd(i), l.most)
		}
	}
	return l.most
}

func bucketOf(d time.Duration) int {
	v := uint64(max(0, d))
	if v < 1<<subBits {
		return int(v)
	}
	power := bits.Len64(v) - 1
	if power > maxPower {
		return buckets - 1
	}
	part := v >> (power - subBits) & (1<<subBits - 1)
	return (power-subBits+1)<<subBits | int(part)
}

// bucketEnd is the longest time of a bucket.
func bucketEnd(i int) time.Duration {
	if i < 1<<subBits {
		return time.Duration(i)
	}
	power := i>>subBits + subBits - 1
	part := uint64(i & (1<<subBits - 1))
	width := uint64(1) << (power - subBits)
	return time.Duration(uint64(1)<<power + (part+1)*width - 1)
}
